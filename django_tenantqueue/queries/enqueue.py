"""Statements of the enqueuing side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from .base import execute, fetch, statement


@dataclass(frozen=True, slots=True)
class NewJob:
    """All that an INSERT of a job needs. `args`, `context` are JSON texts."""

    queue_id: int
    lane: int
    priority: int
    is_async: bool
    run_at: datetime | None
    delay_seconds: float
    expires_at: datetime | None
    max_attempts: int
    timeout_seconds: float | None
    hard_timeout_seconds: float | None
    name: str
    source_type: str
    source_id: str
    source_method: str
    args: str
    labels: list[str] | None
    created_by: str | None
    context: str | None


@dataclass(frozen=True, slots=True)
class InsertedJob:
    """What the database made of a new job."""

    id: int
    state: str
    sleepers: bool
    """Some worker slept when the row was inserted."""


@dataclass(frozen=True, slots=True)
class FoundQueue:
    """The part of a tenant queue that enqueuing looks at."""

    id: int
    retired: bool


def _params(job: NewJob, *, unseen: bool) -> dict[str, Any]:
    params = {name: getattr(job, name) for name in NewJob.__slots__}
    params["unseen"] = unseen
    return params


def insert_job(using: str, job: NewJob, *, unseen: bool = False) -> InsertedJob | None:
    """Insert one job; None when its queue is retired or not visible.

    `unseen` inserts although the queue is not visible: for a REPEATABLE READ caller whose snapshot
    is older than the queue.
    """
    row = execute(using, "insert_job", _params(job, unseen=unseen)).fetchone()
    return None if row is None else InsertedJob(*row)


def insert_jobs(using: str, job: NewJob, *, unseen: bool = False) -> list[int]:
    """Insert a job for each element of the JSON array `job.args`; return the ids in its order."""
    return [row[0] for row in execute(using, "insert_jobs", _params(job, unseen=unseen))]


def find_queue(using: str, tenant: str, name: str) -> FoundQueue | None:
    """Look up a tenant queue, in the caller's snapshot."""
    rows = fetch(using, "find_queue", {"tenant": tenant, "name": name})
    return FoundQueue(*rows[0]) if rows else None


@contextmanager
def _autocommitted(using: str) -> Iterator[BaseDatabaseWrapper]:
    """Yield a second connection outside the caller's transaction.

    Inside a Django TestCase, whose transaction is never committed, it is the caller's own.
    """
    wrapper = connections[using]
    in_test = any(getattr(block, "_from_testcase", False) for block in wrapper.atomic_blocks)
    if in_test or not wrapper.in_atomic_block:
        yield wrapper
        return
    other = wrapper.copy()
    try:
        other.ensure_connection()
        other.connection.execute("SET default_transaction_isolation = 'read committed'")
        yield other
    finally:
        other.close()


def create_queue(using: str, tenant: str, name: str, num_slots: int) -> FoundQueue:
    """Make a tenant queue unless it exists, committed at once; return it."""
    params = {"tenant": tenant, "name": name, "num_slots": num_slots}
    with _autocommitted(using) as wrapper, wrapper.wrap_database_errors:
        wrapper.ensure_connection()
        raw: psycopg.Connection[Any] = wrapper.connection
        cursor = psycopg.Cursor(raw)
        cursor.execute(statement("create_queue"), params)
        row = cursor.execute(statement("find_queue"), params).fetchone()
    assert row is not None, "the row was inserted above, or by the one who raced"
    return FoundQueue(*row)


def wake_workers(using: str, filled: Mapping[tuple[str, str], int]) -> int:
    """Wake sleeping workers for new jobs; return how many.

    `filled` maps (tenant, queue) to the number of jobs. As many workers are woken as there are
    jobs, if so many sleep that take one of these queues.
    """
    params = {
        "tenants": [tenant for tenant, _ in filled],
        "queues": [queue for _, queue in filled],
        "most": sum(filled.values()),
    }
    return len(fetch(using, "wake_workers", params))


def wake_any_workers(where: str | psycopg.Connection[Any], *, most: int, worker_id: int = 0) -> int:
    """Wake up to `most` sleeping workers, the asking one left out; return how many."""
    return len(fetch(where, "wake_any_workers", {"most": most, "worker": worker_id}))
