"""Statements that tell the dead from the living, and take back what the dead held."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import transaction

from .base import array, execute, fetch

LOCK_CLASS = 0x7471
"""First key of the advisory lock that stands for a living worker process; the second is its id."""


@dataclass(frozen=True, slots=True)
class Rescued:
    """What became of the jobs of a dead worker, by id."""

    returned: list[int]
    """Not started: ready again, no attempt counted."""
    retried: list[int]
    """Started: ready again."""
    ended: list[int]
    """Started with attempts spent, or cancelled: final."""
    complete: bool
    """Nothing is left, and the worker's row is gone. Else somebody has locked a job's row."""

    def __bool__(self) -> bool:
        return bool(self.returned or self.retried or self.ended)


def hold_lease(connection: psycopg.Connection[Any], worker_id: int) -> bool:
    """Take the lock of a worker process; False when another session holds it."""
    params = {"lock_class": LOCK_CLASS, "worker": worker_id}
    return bool(fetch(connection, "hold_lease", params)[0][0])


def end_lease(connection: psycopg.Connection[Any], worker_id: int) -> None:
    """Let the lock of a worker process go."""
    execute(connection, "end_lease", {"lock_class": LOCK_CLASS, "worker": worker_id})


def find_dead_workers(using: str, *, settle_seconds: float, lease_seconds: float) -> list[int]:
    """Return the ids of workers that look dead now; look twice before believing it."""
    params = {
        "lock_class": LOCK_CLASS,
        "settle_seconds": settle_seconds,
        "lease_seconds": lease_seconds,
    }
    return [row[0] for row in fetch(using, "find_dead_workers", params)]


def rescue_worker(
    using: str,
    worker_id: int,
    *,
    started: Collection[int] | None,
    error: str,
    max_errors: int,
) -> Rescued:
    """Take back the jobs of a dead worker and, when none is left, delete its row.

    In one transaction; jobs whose rows are locked are left for the next try.

    `started` are the ids of the jobs it had begun (None: unknown); `error` is the JSON text of the
    error to keep with those.
    """
    params = {
        "worker": worker_id,
        "started": None if started is None else array(sorted(started)),
        "error": error,
        "max_errors": max_errors,
    }
    with transaction.atomic(using=using):
        ended = [row[0] for row in fetch(using, "bury_jobs", params)]
        rescued = fetch(using, "rescue_jobs", params)
        left = fetch(using, "count_claims", {"worker": worker_id})[0][0]
        if not left:
            fetch(using, "delete_worker", {"worker": worker_id})
    return Rescued(
        returned=[job_id for job_id, begun in rescued if not begun],
        retried=[job_id for job_id, begun in rescued if begun],
        ended=ended,
        complete=not left,
    )
