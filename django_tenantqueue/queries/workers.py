"""Statements about worker rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from .base import Where, array, execute, execute_bounded, fetch
from .claim import ClaimedJob

LISTEN = b"""
    DO $$ BEGIN
        EXECUTE concat_ws('_', 'LISTEN tenantqueue', 'tenantqueue_worker'::regclass::oid, %d);
    END $$
"""


@dataclass(frozen=True, slots=True)
class NewWorker:
    """What a worker process says of itself when it signs on."""

    name: str
    host: str
    pid: int
    supervisor_pid: int
    version: str
    queues: Sequence[str] = ()
    exclude_queues: Sequence[str] = ()
    tenants: Sequence[str] = ()
    threads: int = 0
    async_slots: int = 0
    role: str = "worker"
    executor: str = ""


def insert_worker(
    connection: psycopg.Connection[Any], worker: NewWorker, *, leased: bool = False
) -> int:
    """Register a worker process; return its id. `leased`: a lock shows whether it lives."""
    params = {name: getattr(worker, name) for name in NewWorker.__slots__}
    params["leased"] = leased
    for name in ("queues", "exclude_queues", "tenants"):
        params[name] = list(params[name])
    worker_id: int = fetch(connection, "insert_worker", params)[0][0]
    return worker_id


def sign_on_worker(connection: psycopg.Connection[Any], worker_id: int, pid: int) -> None:
    """Write which process the registered worker is."""
    execute(connection, "sign_on_worker", {"worker": worker_id, "pid": pid})


def delete_worker(connection: psycopg.Connection[Any], worker_id: int) -> bool:
    """Sign a worker process off; False while it holds jobs."""
    return bool(execute_bounded(connection, "delete_worker", {"worker": worker_id}).fetchall())


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """What the server answers to a sign of life.

    `drain`: an operator wants the worker to drain. `clock_ahead`: see read_clock_ahead().
    `has_unknown`: some workers lack tasks.
    """

    drain: bool
    clock_ahead: float
    has_unknown: bool


def heartbeat_worker(
    connection: psycopg.Connection[Any],
    worker_id: int,
    *,
    jobs_running: int,
    rss_bytes: int | None,
    claims_per_second: float,
    jobs_per_second: float,
    error: str | None,
    clock_ahead: float = 0.0,
) -> HeartbeatAnswer | None:
    """Write a sign of life; return what is answered, None when its row is gone.

    `error` is what went wrong since the last one, `clock_ahead` what its answer said of the clock.
    """
    params = {
        "worker": worker_id,
        "jobs_running": jobs_running,
        "rss_bytes": rss_bytes,
        "claims_per_second": claims_per_second,
        "jobs_per_second": jobs_per_second,
        "error": error,
        "clock_ahead": clock_ahead,
    }
    sent = time.time()
    row = execute_bounded(connection, "heartbeat_worker", params).fetchone()
    return None if row is None else HeartbeatAnswer(bool(row[0]), _ahead(sent, row[1]), row[2])


def share_unknown_tasks(
    connection: psycopg.Connection[Any],
    worker_id: int,
    names: Sequence[str],
    *,
    silent_seconds: float,
) -> dict[str, bool]:
    """Write which tasks this worker lacks; return those that any worker lacks.

    The values say whether another worker may have the task. One without a heartbeat for
    `silent_seconds` does not count.
    """
    params = {"worker": worker_id, "names": list(names), "silent_seconds": silent_seconds}
    return dict(execute_bounded(connection, "share_unknown_tasks", params).fetchall())


def hurry_unknown(
    connection: psycopg.Connection[Any],
    names: Sequence[str],
    *,
    error_class: str,
    seconds: float,
    most: int,
) -> int:
    """Make jobs of these tasks due now whose last error is of `error_class`; return how many.

    `most` scheduled jobs are looked at, of those that are due within `seconds`.
    """
    params = {"names": list(names), "error_class": error_class, "seconds": seconds, "most": most}
    return len(execute_bounded(connection, "hurry_unknown", params).fetchall())


def read_clock_ahead(where: Where) -> float:
    """Return the seconds by which the clock of this machine is ahead of the server's at least."""
    sent = time.time()
    return _ahead(sent, fetch(where, "read_clock", {})[0][0])


def _ahead(sent: float, server: datetime) -> float:
    """Return the difference that the time between question and answer does not explain."""
    told = server.timestamp()
    return max(0.0, sent - told) or min(0.0, time.time() - told)


def queue_range(where: Where) -> tuple[int, int]:
    """Return the lowest and the highest id of a queue, zeros when there is none."""
    lowest, highest = fetch(where, "queue_range", {})[0]
    return lowest, highest


def connection_budget(using: str) -> tuple[int, int]:
    """Return how many connections the server allows, and how many the workers may open."""
    allowed, fleet = fetch(using, "connection_budget", {})[0]
    return allowed, fleet


class TakenJob(NamedTuple):
    """A job that was taken over, with the names of its tenant and queue."""

    claimed: ClaimedJob
    tenant: str
    queue: str


def take_over(
    connection: psycopg.Connection[Any], worker_id: int, claims: Sequence[tuple[int, int, int]]
) -> list[TakenJob]:
    """Move claims (id, worker, claim_seq) to this worker; return those that still stood."""
    claims = sorted(claims)
    params = {
        "worker": worker_id,
        "ids": array(c[0] for c in claims),
        "workers": array(c[1] for c in claims),
        "seqs": array(c[2] for c in claims),
    }
    rows = execute_bounded(connection, "take_over", params)
    return [TakenJob(ClaimedJob(*row[:-2]), *row[-2:]) for row in rows]


@dataclass(frozen=True, slots=True)
class Orders:
    """What an operator wants of a worker process."""

    worker_id: int
    drain: bool
    stop: bool


def read_orders(connection: psycopg.Connection[Any], worker_ids: Sequence[int]) -> list[Orders]:
    """Return what operators want of these worker processes."""
    return [Orders(*row) for row in fetch(connection, "read_orders", {"ids": array(worker_ids)})]


def sleep_worker(
    connection: psycopg.Connection[Any], worker_id: int, seconds: float, *, renew: bool = False
) -> int:
    """Announce that this worker sleeps for up to `seconds`, or `renew` the announcement.

    Return the number of workers, at most 40; 0 when an enqueuer has ended the sleep meanwhile.
    """
    params = {"worker": worker_id, "seconds": seconds, "renew": renew}
    return sum(row[0] for row in fetch(connection, "sleep_worker", params))


def clear_sleep(connection: psycopg.Connection[Any], worker_id: int) -> None:
    """End the sleep announced by `sleep_worker`."""
    execute(connection, "clear_sleep", {"worker": worker_id})


def take_lead(connection: psycopg.Connection[Any], key: int) -> bool:
    """Try to hold the advisory lock `key`; return whether this session does."""
    return bool(fetch(connection, "take_lead", {"key": key})[0][0])


def listen(connection: psycopg.Connection[Any], worker_id: int) -> None:
    """Listen for the notifications meant for this worker.

    The oid of its table is in the name of the channel: a worker of another installation in the
    database may have the same id. parts/woken.sql notifies it.
    """
    connection.execute(LISTEN % int(worker_id))


def find_queue_names(connection: psycopg.Connection[Any], queue_id: int) -> tuple[str, str]:
    """Return (tenant, name) of a queue; two empty texts when it is gone."""
    row = execute(connection, "find_queue_names", {"queue_id": queue_id}).fetchone()
    return ("", "") if row is None else (row[0], row[1])
