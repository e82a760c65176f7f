"""Statements about tasks that are paused or capped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

import psycopg
from django.db import connections, transaction

from ..gates import TASK, JobGates
from .base import array, fetch
from .claim import ClaimedJob, Key, Pair, start_params
from .gates import LOCK_MILLISECONDS, Where
from .lists import read_in_order
from .locks import GATE_LOCK_CLASSES

FIRST_LANE = -40_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claimed job may start. `is_open`: nothing holds its task any more."""

    job_id: int
    is_granted: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a walk over the queues in a task's line begins: behind `start`, or goes on."""

    start: int
    lane: int = FIRST_LANE
    queue_id: int = 0
    wrapped: bool = True


@dataclass(frozen=True, slots=True)
class TaskRelease:
    """What a release did, and where the next one goes on."""

    last_queue: int | None
    lane: int
    queue_id: int
    wrapped: bool
    is_cut: bool
    """It ended at its most steps."""
    places: list[list[int]] | None
    """Of each job made ready: its id, lane, queue and priority."""
    gates: list[str] | None
    """Of each job that went back to an earlier gate: that gate, for JobGates.read()."""


@dataclass(frozen=True, slots=True)
class TaskLoad:
    """What stands before a task and has slots of it."""

    control_id: int
    inside: int
    line: int


def take_task_slots(
    where: Where, worker_id: int, jobs: Sequence[ClaimedJob], *, locked: bool = True
) -> list[Verdict]:
    """Give claimed jobs slots of their tasks, or put them into the line.

    In a transaction of its own, or in Django's open one. Without `locked` all of capped and paused
    tasks go into the line. Raises the error of a lock that could not be had.
    """
    params = {
        "worker": worker_id,
        "ids": array(job.id for job in jobs),
        "seqs": array(job.claim_seq for job in jobs),
        "locked": locked,
    }
    names = sorted({job.name for job in jobs})
    with _transaction(where):
        if locked:
            lock = {"lock_class": GATE_LOCK_CLASSES[TASK], "keys": names}
            fetch(where, "lock_gates", lock)
        return [Verdict(*row) for row in fetch(where, "take_task_slots", params)]


def _transaction(where: Where) -> AbstractContextManager[object]:
    limit = f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}"
    with ExitStack() as stack:
        if isinstance(where, psycopg.Connection):
            stack.enter_context(where.transaction())
            where.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            where.execute(limit.encode())
            return stack.pop_all()
        stack.enter_context(transaction.atomic(using=where))
        if not connections[where].savepoint_ids:
            with connections[where].cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                cursor.execute(limit)
        return stack.pop_all()


def release_task(
    where: Where, name: str, place: Place, *, wait_seconds: float | None, most: int, steps: int
) -> TaskRelease:
    """Make jobs of a capped task ready, as many as it has free slots."""
    params = {
        "name": name,
        "start": place.start,
        "from_lane": place.lane,
        "from_queue": place.queue_id,
        "from_wrapped": place.wrapped,
        "wait_seconds": wait_seconds,
        "most": most,
        "most_steps": steps,
    }
    return TaskRelease(*fetch(where, "release_task", params)[0])


def open_task_lines(
    where: Where, names: Sequence[str], *, most: int
) -> list[tuple[bool, JobGates]]:
    """Let jobs go whose tasks nothing holds any more.

    Return of each whether it is ready, and the gate that it went back to, if it is not.
    """
    rows = fetch(where, "open_task_lines", {"names": list(names), "most": most})
    return [(is_ready, JobGates.read(gates)) for is_ready, gates in rows]


@dataclass(frozen=True, slots=True)
class OpenStart:
    """Where jobs of open tasks begin in one lane of a queue, as far as it was read.

    Keys are (priority, id); None: there is none.
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
    """Look where the first ready jobs stand that claims need not pass over."""
    params = {**start_params(starts), "most_read": most_read, "most_moved": most_moved}
    return [
        OpenStart((lane, queue_id), jobs, closed, *(key and (key[0], key[1]) for key in keys))
        for lane, queue_id, jobs, closed, *keys in fetch(where, "find_open_start", params)
    ]


def set_aside_ready(where: Where, pairs: Iterable[Pair], *, most: int) -> list[JobGates]:
    """Move ready jobs of closed tasks into the lines of their tasks, `most` of each pair.

    Return of each the gates that have room by that.
    """
    chosen = list(pairs)
    params = {
        "lanes": array(lane for lane, _ in chosen),
        "queues": array(queue_id for _, queue_id in chosen),
        "most": most,
    }
    return [JobGates.read(gates) for (gates,) in fetch(where, "set_aside_ready", params)]


def set_aside_held(where: Where, kind: str, keys: Iterable[str], *, most: int) -> int:
    """Move jobs of closed tasks from the lines of these gates into those of their tasks.

    Of the first `most` in each line; return how many.
    """
    params = {"kind": kind, "keys": sorted(keys), "most": most}
    return len(fetch(where, "set_aside_held", params))


def is_closed(using: str, name: str) -> bool:
    """Whether a task may start no job now: it is paused, or has no free slot."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT FROM tenantqueue_closedtask WHERE name = %s", [name])
        return bool(cursor.rowcount)


def find_task_lines(where: Where, *, most: int) -> list[tuple[str, bool]]:
    """Return the tasks that have a line and are not paused, and whether they are capped."""
    return [
        (name, is_capped) for name, is_capped in fetch(where, "find_task_lines", {"most": most})
    ]


def mark_task_jobs(where: Where, *, settle_seconds: float) -> list[str]:
    """Count the jobs that were claimed before their task was held; return the tasks looked at."""
    rows = fetch(where, "mark_task_jobs", {"settle_seconds": settle_seconds})
    return [row[0] for row in rows]


def count_tasks(using: str, ids: Sequence[int], *, most: int) -> list[TaskLoad]:
    """Return what stands before tasks, counted up to `most`, by the ids of their controls."""
    with read_in_order(using):
        rows = fetch(using, "count_tasks", {"ids": array(ids), "most": most})
    return [TaskLoad(*row) for row in rows]
