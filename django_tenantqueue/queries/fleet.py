"""Statements that tell what the fleet is doing. None walks the history or the whole backlog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from .base import array
from .lists import fetch_in_order


@dataclass(frozen=True, slots=True)
class RunningClaim:
    """A job that a worker holds. `of_worker`: how many its worker holds, this one included."""

    id: int
    worker_id: int | None
    name: str
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
    user: int
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
class StuckQueue:
    """A queue with ready jobs that nothing starts.

    `halted`: it is paused, or has no slots. `taken`: some live worker takes its jobs.
    """

    tenant: str
    name: str
    halted: bool
    taken: bool


@dataclass(frozen=True, slots=True)
class Startable:
    """Ready jobs that lack nothing but a worker, and how long the first of them has waited."""

    jobs: int
    oldest_wait_seconds: float | None


REASONS = ("paused", "slots", "rate")


@dataclass(frozen=True, slots=True)
class Blocked:
    """Queues with ready jobs that cannot start. `reason`: one of REASONS."""

    reason: str
    queues: int
    jobs: int


@dataclass(frozen=True, slots=True)
class StuckLine:
    """A line of held jobs that moves no more until an operator acts.

    `kind`: "session", "user", "task" or "monitor". `why`: "halted", "paused" or "stopped".
    """

    kind: str
    tenant: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class HeldJobs:
    """Jobs of one queue that one gate holds.

    `gate`: see gates.ORDER. `key`: the key of the gate at which the first of them waits: that of a
    session, user or exclusive key, a monitor's id, or a task. `wait_seconds`: how long that job has
    waited. `jobs` are counted up to a limit.
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
    """Jobs that were given back since no worker that claimed them knows their task."""

    name: str
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


def list_stuck_queues(using: str, *, most: int, silent_seconds: float) -> list[StuckQueue]:
    """Return queues with ready jobs that nothing starts; up to `most` (lane, queue) looked at."""
    params = {"visits": most, "silent_seconds": silent_seconds}
    rows = fetch_in_order(using, "list_stuck_queues", params)
    return [StuckQueue(*row) for row in rows]


def count_startable(using: str, *, most: int, visits: int) -> Startable:
    """Count ready jobs that could start now, up to `most`, in up to `visits` (lane, queue)."""
    rows = fetch_in_order(using, "count_startable", {"most": most, "visits": visits})
    return Startable(*rows[0])


def list_stuck_lines(using: str, *, most: int) -> list[StuckLine]:
    """Return lines of held jobs that have been stopped; looks at up to `most` of each kind."""
    rows = fetch_in_order(using, "list_stuck_lines", {"most": most})
    return [StuckLine(*row) for row in rows]


def list_held(using: str, *, listed: int, visits: int, most: int) -> list[HeldJobs]:
    """Return up to `listed` queues of each gate that hold jobs, the longest wait first.

    Looks at up to `visits` (queue, gate), and counts up to `most` jobs of each that it returns.
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


@dataclass(frozen=True, slots=True)
class BusyQueue:
    """A queue with ready or active jobs.

    `executor`: "" where its jobs run in workers. `wait_seconds`: None when no job of it is ready.
    `capped`: there may be more such queues than were looked at, or more active jobs than were
    counted.
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
    capped: bool


def count_claims_of_workers(
    using: str, workers: Iterable[int], *, is_async: bool | None = None
) -> dict[int, int]:
    """Return how many jobs each of these workers holds; those without any are left out.

    `is_async`: count the coroutines alone, or the others alone.
    """
    params = {"workers": array(workers), "is_async": is_async}
    return dict(fetch_in_order(using, "count_claims_of_workers", params))


def list_busy_of_queues(
    using: str, queue_ids: Sequence[int], *, most: int, active: int
) -> list[BusyQueue]:
    """Return up to `most` of these queues that have jobs, the longest wait first.

    Counts up to `active` active jobs of each.
    """
    params = {"ids": array(queue_ids), "most": most, "active": active}
    rows = fetch_in_order(using, "list_busy_of_queues", params)
    return [BusyQueue(*row) for row in rows]


def list_busy_queues(using: str, *, most: int, visits: int, active: int) -> list[BusyQueue]:
    """Return up to `most` queues with jobs, the longest wait first.

    Looks at up to `visits` (lane, queue) and `active` active jobs.
    """
    params = {"listed": most, "visits": visits, "active": active}
    rows = fetch_in_order(using, "list_busy_queues", params)
    return [BusyQueue(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Backlog:
    """Queues with ready jobs: what blocks them, what could start, and those that wait longest."""

    blocked: Sequence[Blocked]
    startable: Startable
    queues: Sequence[BusyQueue]


def read_backlog(
    using: str, *, most: int, startable: int, listed: int, visits: int, active: int
) -> Backlog:
    """Return what count_startable() and list_busy_queues() do, and what is blocked, in one walk.

    Up to `most` blocked jobs of each reason, `startable` jobs and `listed` queues.
    """
    params = {
        "most": most,
        "startable": startable,
        "listed": listed,
        "visits": visits,
        "active": active,
    }
    rows = fetch_in_order(using, "read_backlog", params)
    queues, jobs, could, waits = rows[0][:4]
    return Backlog(
        [Blocked(*one) for one in zip(REASONS, queues, jobs, strict=True)],
        Startable(could, waits),
        [BusyQueue(*row[4:]) for row in rows if row[4] is not None],
    )
