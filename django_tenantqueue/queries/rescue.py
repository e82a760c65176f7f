"""Statements that find dead workers and take back their jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import transaction

from ..states import State
from .base import Where, array, execute, fetch
from .locks import LockClass
from .session_halt import halt_sessions


@dataclass(frozen=True, slots=True)
class Held:
    """A job that a dead worker process held."""

    id: int
    running: bool
    """Its start was recorded."""
    attempt: int
    max_attempts: int
    crashes: int
    cancel: bool
    """Its cancellation was asked for."""
    gates: str | None = None
    """Its gates, for JobGates.read()."""
    queue_id: int = 0
    task: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to become of one of them."""

    id: int
    ends: bool = False
    counted: bool = False
    """The attempt counts, and the error is kept."""
    delay_seconds: float = 0.0


def hold_lease(connection: psycopg.Connection[Any], worker_id: int) -> bool:
    """Take the lock of a worker process; False when another session holds it."""
    params = {"lock_class": LockClass.LEASE, "worker": worker_id}
    return bool(fetch(connection, "hold_lease", params)[0][0])


def renew_leases(connection: psycopg.Connection[Any], worker_ids: Iterable[int]) -> None:
    """Renew the heartbeats of worker processes whose locks were taken again."""
    execute(connection, "renew_leases", {"ids": array(worker_ids)})


def end_lease(connection: psycopg.Connection[Any], worker_id: int) -> None:
    """Let the lock of a worker process go."""
    execute(connection, "end_lease", {"lock_class": LockClass.LEASE, "worker": worker_id})


def has_followed(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server may have taken the place of another one since it was started.

    Services that only resemble PostgreSQL may refuse to say: there it may have.
    """
    try:
        return bool(fetch(connection, "has_followed", {})[0][0])
    except psycopg.Error as error:
        if error.sqlstate is None or connection.broken:
            raise
        return True


def find_dead_workers(
    where: Where, *, settle_seconds: float, lease_seconds: float
) -> dict[int, float]:
    """Return the workers that look dead now, by id; look twice before believing it.

    The value is the age of the last heartbeat, in seconds; inf where it proves nothing.
    """
    params = {
        "lock_class": LockClass.LEASE,
        "settle_seconds": settle_seconds,
        "lease_seconds": lease_seconds,
    }
    found = fetch(where, "find_dead_workers", params)
    return {worker: math.inf if silent is None else silent for worker, silent in found}


def rescue_worker(
    using: str,
    worker_id: int,
    judge: Callable[[list[Held]], list[Verdict]],
    *,
    error: str,
    crashed: bool,
    max_errors: int,
) -> tuple[list[Verdict], bool]:
    """Take back the jobs of a dead worker and, when none is left, delete its row.

    In one transaction. `judge` decides about each job; `error` is the JSON text of the error to
    keep with those that count. Returns its verdicts, and whether nothing is left: jobs whose rows
    are locked wait for the next try.
    """
    shared = {"worker": worker_id, "error": error, "crashed": crashed, "max_errors": max_errors}
    with transaction.atomic(using=using):
        held = [Held(*row) for row in fetch(using, "lock_claims", {"worker": worker_id})]
        verdicts = judge(held) if held else []
        ended = [v.id for v in verdicts if v.ends]
        again = [v for v in verdicts if not v.ends]
        if ended:
            counted = array(v.id for v in verdicts if v.counted)
            fetch(using, "fail_jobs", {**shared, "ids": array(ended), "counted": counted})
            states = {True: State.CANCELLED, False: State.ERROR}
            ends = ((job.id, states[job.cancel], job.gates) for job in held if job.id in ended)
            halt_sessions(using, ends)
        if again:
            params = {
                "ids": array(v.id for v in again),
                "counted": array(v.counted for v in again),
                "delays": array(v.delay_seconds for v in again),
            }
            fetch(using, "rescue_jobs", {**shared, **params})
        complete = not fetch(using, "find_claims", {"worker": worker_id})
        if complete:
            fetch(using, "delete_worker", {"worker": worker_id})
    return verdicts, complete
