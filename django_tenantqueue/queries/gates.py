"""Statements that release jobs at their gates, and those about sessions and user limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from ..gate_keys import EXCLUSIVE, LIMIT_USER, MONITOR, SESSION
from .base import Where, array, fetch
from .locks import GATE_LOCK_CLASSES

Keys = dict[str, set[str]]
"""Keys of gates by their kinds."""
Place = tuple[int, int, int]
"""A lane, the id of a queue, and a priority: its jobs come in the order of their ids."""


def add_gates(keys: Keys, gates: Iterable[tuple[str, str]]) -> None:
    """Add gates, given by kind and key, to `keys`."""
    for kind, key in gates:
        keys.setdefault(kind, set()).add(key)


@dataclass(frozen=True, slots=True)
class Moved:
    """A job that a release has moved, with its gates and its place."""

    job_id: int
    passes: bool
    state: str
    session: str | None
    limit_user: str | None
    exclusive: str | None
    monitor: str | None
    lane: int
    queue_id: int
    priority: int

    def gates(self) -> Iterable[tuple[str, str]]:
        """Return the kinds and keys of its gates, in order."""
        keys = (self.monitor, self.session, self.limit_user, self.exclusive)
        pairs = zip((MONITOR, SESSION, LIMIT_USER, EXCLUSIVE), keys, strict=True)
        return [(kind, key) for kind, key in pairs if key is not None]


@dataclass(slots=True)
class Released:
    """Result of a release: jobs that became ready, gates to release in another transaction."""

    ready: int = 0
    later: Keys = field(default_factory=dict)
    places: dict[Place, int] = field(default_factory=dict)
    """Where they became ready, and the least ids there."""
    has_controls: bool = False
    """Some tasks are paused or limited: their jobs may be in the lines of these gates."""

    def note(self, job_id: int, place: Sequence[int], *, moved: bool = False) -> None:
        """Count a job that became ready at a queue's priority; not one that only moved there."""
        self.ready += not moved
        lane, queue_id, priority = place
        self._lower((lane, queue_id, priority), job_id)

    def add(self, other: Released) -> None:
        """Count what another release made ready; its `later` is left alone."""
        self.ready += other.ready
        for place, job_id in other.places.items():
            self._lower(place, job_id)

    def _lower(self, place: Place, job_id: int) -> None:
        self.places[place] = min(job_id, self.places.get(place, job_id))


def is_lock_lost(error: BaseException) -> bool:
    """Whether this error, or the cause of Django's, is of a lock that timed out."""
    lost = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
    return isinstance(error, lost) or isinstance(error.__cause__, lost)


def lock_gates(where: Where, kind: str, keys: Sequence[str]) -> bool:
    """Lock gates until the commit; return whether some tasks are paused or capped."""
    params = {"lock_class": GATE_LOCK_CLASSES[kind], "keys": list(keys)}
    rows = fetch(where, "lock_gates", params)
    return any(has_controls for _, has_controls in rows)


def release_gates(where: Where, kind: str, keys: Sequence[str], *, user_slots: int) -> list[Moved]:
    """Release jobs at locked sessions, user limits or exclusive keys; return the moved ones."""
    params = {"kind": kind, "keys": list(keys), "user_slots": user_slots}
    return [Moved(*row) for row in fetch(where, "release_gates", params)]


def find_open(
    where: Where, kind: str, *, after: str, most: int, user_slots: int
) -> tuple[set[str], str]:
    """Read up to `most` gates of a kind that hold jobs, in the order of their keys.

    Return those that a release would change, and where the next read begins.
    """
    params = {"after": after, "most": most, "kind": kind, "user_slots": user_slots}
    rows = fetch(where, "find_open_gates", params)
    return {key for key, is_open in rows if is_open}, rows[-1][0] if len(rows) == most else ""


@dataclass(frozen=True, slots=True)
class SessionLoad:
    """The jobs of a session or user. The first one inside and the head: of sessions alone."""

    session_id: int
    inside: int
    line: int
    first_id: int | None = None
    first_state: str | None = None
    first_run_at: datetime | None = None
    first_held_by: str | None = None
    first_monitor_id: int | None = None
    head_id: int | None = None
    head_run_at: datetime | None = None


def count_sessions(using: str, ids: Sequence[int], *, most: int) -> list[SessionLoad]:
    """Count the jobs inside and in the line of sessions and users, up to `most`."""
    rows = fetch(using, "count_sessions", {"ids": array(ids), "most": most})
    return [SessionLoad(*row) for row in rows]


def prune_sessions(using: str, *, after: int, most: int, keep_seconds: float) -> tuple[int, int]:
    """Remove idle rows among the next `most` that could be.

    Return how many, and where the next step begins.
    """
    params = {"after": after, "most": most, "keep_seconds": keep_seconds}
    removed, looked_at, last = fetch(using, "prune_sessions", params)[0]
    return removed, last if looked_at == most else 0
