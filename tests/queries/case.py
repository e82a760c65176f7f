"""How a statement is tried: with what values, and what it may cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.queries.filled import Filled


@dataclass(frozen=True)
class Case:
    """How one statement is tried."""

    params: Callable[[Filled], dict[str, Any]]
    indexes: tuple[str, ...] = ()
    """What the plan must use. Its head comment names them."""
    buffers: int = 100
    """The pages it may touch; a look-up by primary key takes about four, a change ten more."""
    first_walk: int = 0
    """The pages that it may touch besides where nothing has run before it: entries of dead rows,
    which its first walk marks, or catalogs. It runs again then."""
    worker: bool = False
    """It runs on a worker's connection."""
    before: str = ""
    """A statement of the same transaction that runs first."""
    scans: bool = False
    """Its head comment says that it reads a table whole."""
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """How a function is tried whose statements are made by Django's ORM."""

    run: Callable[[Filled], object]
    indexes: tuple[str, ...] = ()
    """What the plans must use."""
    buffers: int = 100
    """The pages that each statement may touch."""
    first_walk: int = 0
    """See Case."""


def both(
    params: Callable[[Filled], dict[str, Any]], indexes: tuple[str, ...], buffers: int
) -> list[Case]:
    """Return the cases of what the maintenance runs on its supervisor's own connection, which keeps
    its plans as a worker's does, and behind a pooler on one of Django's.
    """
    return [Case(params, indexes, buffers, worker=worker) for worker in (False, True)]
