"""A figure with what it should be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from .evidence import Run

MOST_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure, and what it should be."""

    what: str
    found: int
    expected: str
    ok: bool
    examples: tuple[str, ...] = ()


def none_of(what: str, wrong: Iterable[str]) -> Finding:
    """Return the finding about things that must not be."""
    found = list(wrong)
    return Finding(what, len(found), "0", not found, tuple(found[:MOST_EXAMPLES]))


def describe(run: Run) -> str:
    return f"claim {run.claim_seq} in process {run.process} ({clock(run.began_at)})"


def clock(moment: datetime) -> str:
    """Write a moment as the workers' logs do."""
    return moment.strftime("%H:%M:%S.%f")[:-3]
