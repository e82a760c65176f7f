"""The actor of a change, and its source, for the audit log."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..exceptions import InvalidOption
from ..execution.current_job import running_or_none
from ..models import Change
from ..text import clean_text


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes something. `name`: "" when it is not known."""

    name: str
    source: str


_actor: ContextVar[Actor | None] = ContextVar("tenantqueue_actor", default=None)


@contextmanager
def acting_as(name: str, source: str = Change.Source.CODE) -> Iterator[None]:
    """Record the changes inside the block under this name in the audit log.

    `name` is a user's name, or another text that identifies the actor. `source` is where the change
    comes from: "admin", "command", "api" or "code". It follows coroutines, but not threads that the
    block starts. Raises InvalidOption for another source.
    """
    if source not in Change.Source.values:
        raise InvalidOption(f"source={source!r}: it must be one of {Change.Source.values}")
    token = _actor.set(Actor(clean_text(str(name), 200), source))  # an index has the name
    try:
        yield
    finally:
        _actor.reset(token)


def shell_user() -> str:
    """Return the name of the user that runs this process, for a command's acting_as().

    "" when the system has no name for it, as in some containers.
    """
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""


def current_actor() -> Actor:
    """Return the actor: of acting_as(), else the running job, else code."""
    actor = _actor.get()
    if actor is not None:
        return actor
    job = running_or_none()
    name = "" if job is None else f"job {job.id} ({job.task})"
    return Actor(name, Change.Source.CODE)
