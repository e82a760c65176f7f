"""The gate of tasks that are paused or have a limit or a rate. It follows the claim.

A claim says of each job whether its task has a control. The worker then takes a slot or a start of
the task for the job, under a lock, or puts the job into the line of the task, which claims do not
read. When a job ends, or the rate allows a start, as many jobs leave the line as may start, queue
by queue.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import psycopg
from django.db import DatabaseError

from ..batch_sizes import BATCH
from ..gate_keys import EXCLUSIVE, LIMIT_USER, MONITOR, TASK, JobGates
from ..queries import tasks as queries
from ..queries.base import Where, fetch
from ..queries.claim import ClaimedJob
from ..queries.gates import Keys, Released, add_gates, is_lock_lost, lock_gates
from ..queries.tasks import LeftLine, Place
from ..queries.workers import queue_range
from .gate_transaction import gate_transaction
from .places import MOST_STEPS

logger = logging.getLogger("django_tenantqueue")

MOST_QUEUES = MOST_STEPS
"""Queues that one release reads, and tasks for which a process remembers where it continues."""

_places: dict[tuple[str, str], Place] = {}


@dataclass(slots=True)
class Taken:
    """Claimed jobs whose tasks have a control: with a slot, in the line, and lost."""

    granted: list[ClaimedJob] = field(default_factory=list)
    held: list[ClaimedJob] = field(default_factory=list)
    left: list[ClaimedJob] = field(default_factory=list)
    """Another session has locked or taken them. The caller gives them back."""
    due: dict[str, float] = field(default_factory=dict)
    """Tasks with a rate, and in how many seconds it brings their next starts."""


def take(where: Where, worker_id: int, jobs: Sequence[ClaimedJob]) -> Taken:
    """Give claimed jobs slots and starts of their tasks, or put them into the lines.

    When the lock on a task is not available within 50 ms, all go into the line.
    """
    taken = Taken()
    if not jobs:
        return taken
    try:
        with gate_transaction(where):
            lock_gates(where, TASK, sorted({job.task for job in jobs}))
            verdicts = queries.take_task_slots(where, worker_id, jobs, locked=True)
    except (psycopg.Error, DatabaseError) as error:
        if not is_lock_lost(error):
            raise
        logger.info("locking tasks failed, their jobs wait in line: %s", error)
        verdicts = queries.take_task_slots(where, worker_id, jobs, locked=False)
    found = {verdict.job_id: verdict for verdict in verdicts}
    for job in jobs:
        verdict = found.get(job.id)
        if verdict is not None and verdict.due_seconds is not None:
            taken.due[job.task] = verdict.due_seconds
        if verdict is None:
            taken.left.append(job)
        elif not verdict.is_granted:
            taken.held.append(job)
        elif verdict.is_open:
            taken.granted.append(job)
        else:
            gates = JobGates.read(job.gates) if job.gates else JobGates()
            taken.granted.append(job._replace(gates=gates._replace(task=job.task).text()))
    return taken


def release_tasks(
    where: Where, names: Collection[str], *, waits: bool = True, most: int = 100
) -> Released:
    """Let up to `most` jobs leave the line of each of these tasks, as many as its limits allow.

    With `waits`, a job that was released less than a second ago counts as if it had its slot.
    """
    done = Released()
    for name in sorted(names):
        known = (where if isinstance(where, str) else "", name)
        # a new process does not always start at the first queue
        place = _places.get(known) or Place(random.randint(*queue_range(where)))
        jobs, _places[known] = queries.release_task(
            where, name, place, waits=waits, most=most, steps=MOST_QUEUES
        )
        _note(done, jobs)
    while len(_places) > MOST_QUEUES:
        _places.pop(next(iter(_places)), None)
    return done


def _note(done: Released, jobs: Iterable[LeftLine]) -> None:
    for job in jobs:
        if job.is_ready:
            done.note(job.job_id, (job.lane, job.queue_id, job.priority))
        else:
            add_gates(done.later, job.gates.keys().items())


def let_through(using: str, names: Collection[str]) -> Released:
    """Let a first batch of jobs of these tasks go, with or without a limit.

    `later` of the answer names the earlier gates that jobs have returned to.
    """
    done = release_tasks(using, names, waits=False)
    _note(done, queries.open_task_lines(using, sorted(names), most=BATCH))
    return done


def set_aside_held(where: Where, keys: Keys) -> int:
    """Move jobs of closed tasks out of the lines of these gates; return how many.

    Sessions keep theirs: the jobs of a session start in their order.
    """
    return sum(
        len(queries.set_aside(where, kind, keys[kind], most=BATCH))
        for kind in (MONITOR, LIMIT_USER, EXCLUSIVE)
        if keys.get(kind)
    )


def sweep(using: str, look: Where) -> Released:
    """Count jobs that no cap counts yet, and let jobs go that a release has missed.

    `later` of the answer names the earlier gates that jobs have returned to. `look`: see
    Sweep.step().
    """
    queries.mark_task_jobs(look)
    found = fetch(look, "find_task_lines", {"most": BATCH})
    done = release_tasks(using, [name for name, is_limited in found if is_limited], waits=False)
    if free := [name for name, is_limited in found if not is_limited]:
        _note(done, queries.open_task_lines(using, free, most=BATCH))
    return done
