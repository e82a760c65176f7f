"""Statements about the state of the fleet. None walks the history or the whole backlog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from .base import array
from .lists import fetch_in_order


@dataclass(frozen=True, slots=True)
class RunningClaim:
    """A job that a worker holds. `of_worker`: how many its worker holds, this one included."""

    id: int
    worker_id: int | None
    task: str
    tenant: str
    queue: str
    state: str
    attempt: int
    max_attempts: int
    age_seconds: float
    of_worker: int


@dataclass(frozen=True, slots=True)
class HeldCounts:
    """Held jobs by the gate that holds them, each number counted up to a limit."""

    monitor: int
    session: int
    limit_user: int
    exclusive: int
    task: int


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Unfinished jobs, each number counted up to a limit, and when they were counted."""

    ready: int
    scheduled: int
    running: int
    held: HeldCounts
    read_at: datetime


@dataclass(frozen=True, slots=True)
class StuckLine:
    """A line of held jobs that moves no more until an operator acts.

    `kind`: "session", "limit_user", "task" or "monitor". `why`: "halted", "paused" or "stopped".
    """

    kind: str
    tenant: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class HeldJobs:
    """Jobs of one queue that one gate holds.

    `gate`: see gates.ORDER. `key`: the key of the gate at which the first of them waits: that of a
    session, user limit or exclusive key, a monitor's id, or a task. `wait_seconds`: how long that
    job has waited. `jobs` are counted up to a limit.
    """

    queue_id: int
    tenant: str
    queue: str
    gate: str
    key: str
    wait_seconds: float
    jobs: int


@dataclass(frozen=True, slots=True)
class UnknownJobs:
    """Jobs that were returned because no worker that claimed them knows their task."""

    task: str
    jobs: int


def list_claims(using: str, *, worker_id: int | None, most: int) -> list[RunningClaim]:
    """Return what one worker runs, or all of them (None): up to `most` of each, longest first."""
    rows = fetch_in_order(using, "list_claims", {"worker": worker_id, "most": most})
    return [RunningClaim(*row) for row in rows]


def count_jobs(using: str, *, most: int) -> JobCounts:
    """Count ready, scheduled, running and held jobs, each up to `most`."""
    (row,) = fetch_in_order(using, "count_jobs", {"most": most})
    ready, scheduled, running, *held, read_at = row
    return JobCounts(ready, scheduled, running, HeldCounts(*held), read_at)


def list_stuck_lines(using: str, *, most: int) -> list[StuckLine]:
    """Return lines of held jobs that have been stopped; reads up to `most` of each kind."""
    rows = fetch_in_order(using, "list_stuck_lines", {"most": most})
    return [StuckLine(*row) for row in rows]


def list_held(using: str, *, listed: int, visits: int, most: int) -> list[HeldJobs]:
    """Return up to `listed` queues of each gate that hold jobs, the longest wait first.

    Reads up to `visits` (queue, gate), and counts up to `most` jobs of each that it returns.
    """
    params = {"listed": listed, "visits": visits, "most": most}
    return [HeldJobs(*row) for row in fetch_in_order(using, "list_held", params)]


def list_held_of_queues(using: str, queue_ids: Iterable[int], *, most: int) -> list[HeldJobs]:
    """Return what gates hold of some queues, the longest wait first; counts up to `most` jobs."""
    params = {"ids": array(queue_ids), "most": most}
    return [HeldJobs(*row) for row in fetch_in_order(using, "list_held_of_queues", params)]


def list_unknown_tasks(using: str, *, most: int, error_class: str) -> list[UnknownJobs]:
    """Return the tasks of jobs whose last error is of a class, of the `most` that are due first."""
    rows = fetch_in_order(using, "list_unknown_tasks", {"most": most, "error_class": error_class})
    return [UnknownJobs(*row) for row in rows]


REASONS = ("paused", "slots", "rate")
"""Why none of a queue's ready jobs can start: it is paused, all its slots are taken, or its rate is
used up."""


class BusyQueue(NamedTuple):
    """A queue with ready or active jobs.

    `executor`: "" where its jobs run in workers. `wait_seconds`: None when no job of it is ready.
    `blocked`: one of REASONS; None when a job can start, or none is ready. `jobs`: the counted ones
    of its ready jobs, which are blocked, or lack nothing but a worker. `startable_seconds`: how
    long the first of the latter has waited. `capped`: there may be more such queues than were
    looked at, or more active jobs than were counted.
    """

    id: int
    tenant: str
    name: str
    executor: str
    num_slots: int | None
    weight: int
    paused: bool
    active: int
    wait_seconds: float | None
    blocked: str | None = None
    jobs: int = 0
    startable_seconds: float | None = None
    capped: bool = False


def list_busy_queues(
    using: str, *, listed: int, visits: int, active: int, startable: int, blocked: int
) -> list[BusyQueue]:
    """Return all queues with ready jobs, and up to `listed` in all, the longest wait first.

    Reads up to `visits` (lane, queue) and `active` active jobs. Counts up to `startable` ready
    jobs, and up to `blocked` jobs of each of REASONS.
    """
    params = {
        "listed": listed,
        "visits": visits,
        "active": active,
        "startable": startable,
        "blocked": blocked,
    }
    rows = fetch_in_order(using, "list_busy_queues", params)
    return list(map(BusyQueue._make, rows))


def list_last_full(using: str, queue_ids: Iterable[int], *, most: int) -> dict[int, float]:
    """Return how many seconds ago all slots of these queues were taken, by their ids.

    Reads the last `most` ended jobs of each. Queues that were not full in their time are left out.
    """
    params = {"ids": array(queue_ids), "most": most}
    return dict(fetch_in_order(using, "list_last_full", params))


class HeldByWorker(NamedTuple):
    """How many jobs a worker holds: those for its threads, and coroutines."""

    for_threads: int = 0
    coroutines: int = 0


def count_claims_of_workers(using: str, workers: Iterable[int]) -> dict[int, HeldByWorker]:
    """Return how many jobs each of these workers holds; those without any are left out."""
    rows = fetch_in_order(using, "count_claims_of_workers", {"workers": array(workers)})
    return {worker_id: HeldByWorker(*jobs) for worker_id, *jobs in rows}
