"""Statements that let jobs through their gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from ..gates import EXCLUSIVE, SESSION, USER
from .base import array, fetch

LOCK_MILLISECONDS = 50
"""A release waits no longer for others that let jobs through the same gate."""
_SWEEPS = {
    SESSION: "find_open_sessions",
    USER: "find_open_users",
    EXCLUSIVE: "find_open_exclusives",
}
Keys = dict[str, set[str]]
"""Keys of gates by their kinds."""
Place = tuple[int, int, int]
"""A lane, the id of a queue, and a priority: its jobs come in the order of their ids."""
Where = str | psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class OpenGates:
    """What a step of the sweep found: gates to release, and where to go on; None: it came round."""

    keys: set[str]
    after: str | None


@dataclass(slots=True)
class Released:
    """What a release did: jobs that became ready, and gates to release in another transaction."""

    ready: int = 0
    later: Keys = field(default_factory=dict)
    places: dict[Place, int] = field(default_factory=dict)
    """Where they became ready, and the least ids there."""
    has_controls: bool = False
    """Some tasks are paused or capped: their jobs may stand in the lines of these gates."""

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
    """Whether it says, or Django's error says, that a lock could not be had."""
    lost = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
    return isinstance(error, lost) or isinstance(error.__cause__, lost)


def find_open(where: Where, kind: str, *, after: str, most: int, user_slots: int) -> OpenGates:
    """Look at up to `most` gates of a kind that hold jobs, in the order of their keys."""
    params = {"after": after, "most": most, "kind": kind, "num_slots": user_slots}
    rows = fetch(where, _SWEEPS[kind], params)
    keys = {key for key, is_open in rows if is_open}
    return OpenGates(keys, rows[-1][0] if len(rows) == most else None)


@dataclass(frozen=True, slots=True)
class Halt:
    """A job of a session that ended in error or was cancelled. `wanted`: by what the job says."""

    session: str
    job_id: int
    wanted: bool


def halt_params(halts: Sequence[Halt]) -> dict[str, Any]:
    """Return the parameters of halt_sessions.sql."""
    return {
        "keys": [halt.session for halt in halts],
        "jobs": array(halt.job_id for halt in halts),
        "wanted": array(halt.wanted for halt in halts),
    }


def halt_sessions(where: Where, halts: Sequence[Halt]) -> None:
    """Halt sessions in which a job ended badly, where the job or the session wants that."""
    if halts:
        fetch(where, "halt_sessions", halt_params(halts))
