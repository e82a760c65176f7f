"""Statements of the enqueuing side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from .base import Where, commits_alone, fetch, ready_connection, statement
from .direct import fetch_prepared
from .lists import fetch_in_order

LOCKED_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016)
"""Pauses before another attempt to wake a sleeping worker whose row was locked."""


class NewJob(TypedDict):
    """All that an INSERT of a job needs, as its parameters. `args`, `context` are JSON texts."""

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
    task: str
    source_type: str
    source_id: str
    source_method: str
    args: str
    labels: list[str] | None
    created_by: str | None
    context: str | None
    unseen: bool
    """Insert although the queue is not visible: for a REPEATABLE READ caller whose snapshot is
    older than the queue."""
    has_room: bool
    """The queue's limit of waiting jobs was checked. insert_job.sql does not use it."""


class GatedJob(NewJob):
    """New jobs that have gates to pass or are unique. `held_by` is their first gate."""

    held_by: str | None
    monitor_id: int | None
    session_key: str | None
    session_skip: bool
    session_halt: bool
    limit_user: str | None
    exclusive_keys: list[str] | None
    """One for each element of `args`."""
    unique_mode: str | None
    previous_id: int | None
    follow_ups: str | None
    """JSON text: see queries/follow_ups.py."""


class InsertedJob(NamedTuple):
    """A new job as the database stored it."""

    id: int
    state: str
    sleepers: bool
    """Some worker slept when the row was inserted."""


class InsertedJobs(NamedTuple):
    """Jobs that one statement inserted, in the order of their arguments."""

    ids: list[int]
    state: str


class FoundQueue(NamedTuple):
    """The part of a tenant queue that enqueuing reads."""

    id: int
    retired: bool


class NewQueue(NamedTuple):
    """A tenant queue that is created at its first use."""

    tenant: str
    name: str
    num_slots: int | None
    executor: str | None


def insert_job(wrapper: BaseDatabaseWrapper, job: NewJob) -> InsertedJob | None:
    """Insert one job; None if its queue is retired, not visible, or has `max_waiting`."""
    rows = fetch_prepared(wrapper, "insert_job", job)
    if not rows:
        return None
    job_id, state, sleepers = rows[0]
    return InsertedJob(int(job_id), state, sleepers in (True, "t"))


def insert_jobs(wrapper: BaseDatabaseWrapper, job: GatedJob) -> InsertedJobs | None:
    """Insert a job for each element of the JSON array `args`; None: the queue takes none."""
    rows = fetch_prepared(wrapper, "insert_jobs", job)
    if not rows:
        return None
    ids, state = rows[0]
    return InsertedJobs(
        [int(i) for i in (ids[1:-1].split(",") if isinstance(ids, str) else ids)], state
    )


QueueName = tuple[str, str]
"""Tenant and name of a queue."""


def find_queues(using: str, names: Sequence[QueueName]) -> dict[QueueName, FoundQueue]:
    """Look up tenant queues, in the caller's snapshot; those that do not exist are left out."""
    params = {"tenants": [tenant for tenant, _ in names], "names": [name for _, name in names]}
    return _found(fetch(using, "find_queues", params))


def _found(rows: Iterable[tuple[Any, ...]]) -> dict[QueueName, FoundQueue]:
    return {(tenant, name): FoundQueue(*rest) for tenant, name, *rest in rows}


def in_test_case(wrapper: BaseDatabaseWrapper) -> bool:
    """Return whether a Django TestCase is open, whose transaction is never committed."""
    return any(getattr(block, "_from_testcase", False) for block in wrapper.atomic_blocks)


@contextmanager
def _autocommitted(using: str) -> Iterator[BaseDatabaseWrapper]:
    """Yield a second connection outside the caller's transaction.

    Inside a Django TestCase, whose transaction is never committed, it is the caller's own.
    """
    wrapper = connections[using]
    if in_test_case(wrapper) or not wrapper.in_atomic_block:
        yield wrapper
        return
    other = wrapper.copy()
    try:
        other.ensure_connection()
        other.connection.execute("SET default_transaction_isolation = 'read committed'")
        yield other
        other.connection.execute("RESET default_transaction_isolation")  # it may go to a pool
    finally:
        other.close()


def count_waiting(using: str, queue_id: int) -> tuple[int, int] | None:
    """Return `max_waiting` of a queue and its ready jobs, counted up to that; None: no limit.

    In the caller's snapshot. Read by indexes whatever the statistics say.
    """
    rows = fetch_in_order(using, "count_waiting", {"queue_id": queue_id})
    return rows[0] if rows else None


def create_queues(using: str, queues: Sequence[NewQueue]) -> dict[QueueName, FoundQueue]:
    """Create tenant queues unless they exist, committed at once; return all of them."""
    params = {
        "tenants": [queue.tenant for queue in queues],
        "names": [queue.name for queue in queues],
        "num_slots": [queue.num_slots for queue in queues],
        "executors": [queue.executor for queue in queues],
    }
    with _autocommitted(using) as wrapper, wrapper.wrap_database_errors:
        cursor = psycopg.Cursor(ready_connection(wrapper))
        cursor.execute(statement("create_queues"), params)
        return _found(cursor.execute(statement("find_queues"), params).fetchall())


def wake_workers(using: str, filled: Mapping[tuple[str, str], int]) -> int:
    """Wake sleeping workers for new jobs; return how many.

    `filled` maps (tenant, queue) to the number of jobs. As many workers are woken as there are
    jobs, if enough workers sleep that take one of these queues.
    """
    params = {
        "tenants": [tenant for tenant, _ in filled],
        "queues": [queue for _, queue in filled],
        "most": sum(filled.values()),
        "is_alone": commits_alone(using),
    }
    return _wake(lambda: fetch_prepared(connections[using], "wake_workers", params))


def wake_any_workers(where: Where, *, most: int, worker_id: int = 0) -> int:
    """Wake sleeping workers, the asking one left out; return how many.

    Up to `most` of each kind: of those that take the same queues and tenants.
    """
    params = {"most": most, "worker": worker_id, "is_alone": commits_alone(where)}
    return _wake(lambda: fetch(where, "wake_any_workers", params))


def _wake(send: Callable[[], list[tuple[Any, ...]]]) -> int:
    """Wake workers, again if the rows of all sleeping ones were locked; return how many.

    Such a lock belongs to a heartbeat or to another wake-up, and lasts for a moment.
    """
    woken = 0
    for pause in (*LOCKED_SECONDS, None):
        ids = [row[0] for row in send()]
        woken += len(ids) - ids.count(None)
        if None not in ids or pause is None:
            break
        time.sleep(pause)
    return woken
