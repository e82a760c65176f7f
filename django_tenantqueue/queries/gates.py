"""Statements that let jobs through their gates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg
from django.db import connections, transaction

from ..gates import EXCLUSIVE, MONITOR, ORDER, SESSION, USER, split_gate_key
from .base import array, fetch

GATE_LOCK_CLASSES = {kind: 0x74716730 + at for at, kind in enumerate(ORDER)}
"""First keys of the advisory locks on gates, by kind; the second is the hash of the gate's key."""
LOCK_MILLISECONDS = 50
"""A release waits no longer for others that let jobs through the same gate."""
_RELEASES = {SESSION: "release_sessions", USER: "release_users", EXCLUSIVE: "release_exclusives"}
_SWEEPS = {
    SESSION: "find_open_sessions",
    USER: "find_open_users",
    EXCLUSIVE: "find_open_exclusives",
}
_ROWS = {SESSION: "serial", USER: "user"}
"""Gates that have a row in the table of sessions, of this kind."""

Keys = dict[str, set[str]]
"""Keys of gates by their kinds."""
Spot = tuple[int, int, int]
"""A lane, the id of a queue, and a priority: jobs of one spot come in the order of their ids."""
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
    places: dict[Spot, int] = field(default_factory=dict)
    """Where they became ready, and the least ids there."""
    has_controls: bool = False
    """Some tasks are paused or capped: their jobs may stand in the lines of these gates."""

    def note(self, job_id: int, spot: Sequence[int], *, moved: bool = False) -> None:
        """Count a job that became ready at a spot; not one that only moved there."""
        self.ready += not moved
        lane, queue_id, priority = spot
        self._lower((lane, queue_id, priority), job_id)

    def add(self, other: Released) -> None:
        """Count what another release made ready; its `later` is left alone."""
        self.ready += other.ready
        for spot, job_id in other.places.items():
            self._lower(spot, job_id)

    def _lower(self, spot: Spot, job_id: int) -> None:
        self.places[spot] = min(job_id, self.places.get(spot, job_id))


def is_lock_lost(error: BaseException) -> bool:
    """Whether it says, or Django's error says, that a lock could not be had."""
    lost = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
    return isinstance(error, lost) or isinstance(error.__cause__, lost)


def release_in_transaction(where: Where, keys: Keys, *, user_slots: int) -> Released:
    """Let jobs through the gates `keys` and all later ones that they come to, but for monitors.

    `where` must be in a READ COMMITTED transaction. Raises the error of a lock that could not be
    had, Django's on an alias.
    """
    wanted: Keys = {kind: set(keys.get(kind, ())) for kind in ORDER}
    done = Released()
    for kind, name in _RELEASES.items():
        if not wanted[kind]:
            continue
        chosen = sorted(wanted[kind])
        done.has_controls |= _lock(where, kind, chosen)
        if kind in _ROWS:
            _make_rows(where, _ROWS[kind], chosen)
        params = {"keys": chosen, "num_slots": user_slots}
        if kind == EXCLUSIVE:
            _reject(where, chosen)
        some_passed = False
        for job_id, passes, state, user, exclusive, *rest in fetch(where, name, params):
            spot, monitor = rest[:3], rest[3:]
            if passes and state == "created":
                done.note(job_id, spot)
            some_passed |= passes
            # what passed has come to its next gate, and what was taken back leaves those it was in
            if user is not None and kind == SESSION:
                wanted[USER].add(user)
            if exclusive is not None:
                wanted[EXCLUSIVE].add(exclusive)
            if monitor and monitor[0] is not None:  # its anchor has the turn, or has lost it
                done.later.setdefault(MONITOR, set()).add(monitor[0])
        if kind == EXCLUSIVE and some_passed:
            _reject(where, chosen)
    return done


def _reject(where: Where, keys: list[str]) -> None:
    """Cancel what does not wait before these exclusive keys, where another has passed."""
    found = [row[0] for row in fetch(where, "find_rejected", {"keys": keys})]
    if found:
        fetch(where, "cancel_waiting_jobs", {"ids": array(found), "error": _rejection()})


def _rejection() -> str:
    said = {
        "at": datetime.now(UTC).isoformat(),
        "attempt": 0,
        "class": "django_tenantqueue.exceptions.DuplicateJob",
        "message": "another job with its key was under way (while_executing_reject)",
        "traceback": "",
    }
    return json.dumps(said)


def _lock(where: Where, kind: str, keys: list[str]) -> bool:
    rows = fetch(where, "lock_gates", {"lock_class": GATE_LOCK_CLASSES[kind], "keys": keys})
    return any(has_controls for _, has_controls in rows)


def _make_rows(where: Where, kind: str, keys: list[str]) -> None:
    pairs = [split_gate_key(key) for key in keys]
    params = {
        "kind": kind,
        "tenants": [tenant for tenant, _ in pairs],
        "names": [name for _, name in pairs],
        "keys": keys,
    }
    fetch(where, "make_sessions", params)


def release(where: Where, keys: Keys, *, user_slots: int) -> Released:
    """Do release_in_transaction() in a transaction of its own, or in Django's open one.

    A lock is waited for LOCK_MILLISECONDS at most.
    """
    limit = f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}"
    if isinstance(where, psycopg.Connection):
        with where.transaction():
            where.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            where.execute(limit.encode())
            return release_in_transaction(where, keys, user_slots=user_slots)
    with transaction.atomic(using=where), connections[where].cursor() as cursor:
        if len(connections[where].savepoint_ids) == 0:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(limit)
        return release_in_transaction(where, keys, user_slots=user_slots)


def find_open(where: Where, kind: str, *, after: str, most: int, user_slots: int) -> OpenGates:
    """Look at up to `most` gates of a kind that hold jobs, in the order of their keys."""
    params = {"after": after, "most": most, "num_slots": user_slots}
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
