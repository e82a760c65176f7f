"""Statements about tasks that are paused, capped or have a rate."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections

from ..gate_keys import JobGates
from .base import Where, array, fetch
from .claim import ClaimedJob, Key, Pair, start_params
from .lists import fetch_in_order

READY = "ready"
"""The `kind` of set_aside() for jobs that no gate holds."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claimed job may start. `is_open`: nothing holds its task any more."""

    job_id: int
    is_granted: bool
    is_open: bool
    due_seconds: float | None
    """When the rate of the task brings the next starts: 0 is now; None: it has no rate."""


@dataclass(frozen=True, slots=True)
class LeftLine:
    """A job that has left the line of its task. `gates`: the gate it returned to, if not ready."""

    job_id: int
    lane: int
    queue_id: int
    priority: int
    is_ready: bool
    gates: JobGates


@dataclass(frozen=True, slots=True)
class Place:
    """Where a walk over the queues in a task's line begins (behind `start`) or continues."""

    start: int
    lane: int = -40_000
    queue_id: int = 0
    wrapped: bool = True


@dataclass(frozen=True, slots=True)
class TaskLoad:
    """How many jobs have a slot of a task, and how many are in its line."""

    control_id: int
    inside: int
    line: int


@dataclass(frozen=True, slots=True)
class TaskWait:
    """Waiting jobs of one task in one queue, and how long one of them has waited at most."""

    queue_id: int
    task: str
    jobs: int
    wait_seconds: float


def take_task_slots(
    where: Where, worker_id: int, jobs: Sequence[ClaimedJob], *, locked: bool
) -> list[Verdict]:
    """Give claimed jobs slots and starts of their tasks, or put them into the lines.

    With `locked` it follows lock_gates() of the tasks in a READ COMMITTED transaction. Without it,
    all jobs of controlled tasks go into the line.
    """
    params = {
        "worker": worker_id,
        "ids": array(job.id for job in jobs),
        "seqs": array(job.claim_seq for job in jobs),
        "locked": locked,
    }
    return [Verdict(*row) for row in fetch(where, "take_task_slots", params)]


def release_task(
    where: Where, task: str, place: Place, *, waits: bool, most: int, steps: int
) -> tuple[list[LeftLine], Place]:
    """Let jobs of a task go, as many as its cap and its rate let start.

    Return them and where the next release begins.
    """
    params = {
        "task": task,
        "start": place.start,
        "from_lane": place.lane,
        "from_queue": place.queue_id,
        "from_wrapped": place.wrapped,
        "waits": waits,
        "most": most,
        "most_steps": steps,
    }
    last_queue, lane, queue_id, wrapped, is_cut, jobs = fetch(where, "release_task", params)[0]
    if last_queue is not None:
        after = Place(last_queue)
    else:
        after = Place(place.start, lane, queue_id, wrapped) if is_cut else Place(place.start)
    return _left_line(json.loads(jobs or "[]")), after


def open_task_lines(where: Where, tasks: Sequence[str], *, most: int) -> list[LeftLine]:
    """Let jobs go whose tasks nothing holds any more."""
    return _left_line(fetch(where, "open_task_lines", {"tasks": list(tasks), "most": most}))


def _left_line(rows: Iterable[Sequence[Any]]) -> list[LeftLine]:
    return [
        LeftLine(job_id, lane, queue_id, priority, is_ready, JobGates.read(gates))
        for job_id, lane, queue_id, priority, is_ready, gates in rows
    ]


@dataclass(frozen=True, slots=True)
class OpenStart:
    """Where jobs of open tasks begin in one lane of a queue, as far as it was read.

    Keys are (priority, id). None: there is no such job.
    """

    pair: Pair
    jobs: int
    """Of the first ready jobs, up to `most_moved`; `closed_jobs` of them are of closed tasks."""
    closed_jobs: int
    first_open: Key | None
    """The first one of an open task among them; `last`: the last one of all."""
    last: Key | None
    ahead: Key | None
    """The first one of an open task from the given start on."""
    until: Key | None
    """Where the reading ended; None: there were no more jobs."""

    @property
    def reads_on(self) -> bool:
        """Whether all that was read is of closed tasks, and there is more."""
        return self.first_open is None and self.ahead is None and self.until is not None


def find_open_start(
    where: Where, starts: Mapping[Pair, Key], *, most_read: int, most_moved: int
) -> list[OpenStart]:
    """Find the first ready jobs that claims do not skip."""
    params = {**start_params(starts), "most_read": most_read, "most_moved": most_moved}
    return [
        OpenStart((lane, queue_id), jobs, closed, *(key and (key[0], key[1]) for key in keys))
        for lane, queue_id, jobs, closed, *keys in fetch(where, "find_open_start", params)
    ]


def set_aside(
    where: Where, kind: str, keys: Iterable[str] = (), pairs: Collection[Pair] = (), *, most: int
) -> list[JobGates]:
    """Move jobs of closed tasks into the lines of their tasks; return the gates of each.

    It reads `most` jobs in the line of each gate of this kind. With READY it reads `most` ready
    jobs of each of `pairs`.
    """
    params = {
        "kind": kind,
        "keys": sorted(keys),
        "lanes": array(lane for lane, _ in pairs),
        "queues": array(queue_id for _, queue_id in pairs),
        "most": most,
    }
    return [JobGates.read(gates) for (gates,) in fetch(where, "set_aside", params)]


def seconds_to_start(using: str, task: str) -> float | None:
    """Return when the rate of a task brings its next starts: 0 is now; None: it has no rate."""
    statement = (
        "SELECT greatest(0, (batch - starts) / max_per_second)::float8 "
        "FROM tenantqueue_taskstart WHERE task = %s"
    )
    with connections[using].cursor() as cursor:
        cursor.execute(statement, [task])
        row = cursor.fetchone()
    return None if row is None else float(row[0])


def mark_task_jobs(where: Where) -> int:
    """Count jobs that were claimed before their task was capped; return how many."""
    return len(fetch(where, "mark_task_jobs", {}))


def count_tasks(using: str, ids: Sequence[int], *, most: int) -> list[TaskLoad]:
    """Count running and waiting jobs of tasks up to `most`, by the ids of their controls."""
    rows = fetch_in_order(using, "count_tasks", {"ids": array(ids), "most": most})
    return [TaskLoad(*row) for row in rows]


def list_ready_tasks(using: str, queues: Sequence[int], *, most: int) -> list[TaskWait]:
    """Return the ready jobs of queues by task. Up to `most` of each queue are read."""
    rows = fetch_in_order(using, "list_ready_tasks", {"ids": array(queues), "most": most})
    return [TaskWait(*row) for row in rows]


def list_task_line(using: str, task: str, *, most: int) -> list[TaskWait]:
    """Return the jobs that a task has set aside, by queue. Up to `most` are read."""
    rows = fetch_in_order(using, "list_task_line", {"task": task, "most": most})
    return [TaskWait(queue_id, task, *counts) for queue_id, *counts in rows]
