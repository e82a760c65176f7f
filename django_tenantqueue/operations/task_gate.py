"""The gate of tasks that are paused or capped: it stands behind the claim.

No enqueue and no claim looks for free slots of a task. A claim says of each job whether its task is
controlled; the worker then takes a slot of the task for it, under a lock, or puts it into the
task's line, where no claim walks over it again. Whatever ends makes as many jobs of the line ready
as there are free slots, queue by queue, and these are claimed like any others.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import psycopg
from django.db import OperationalError

from ..conf import get_settings
from ..gates import EXCLUSIVE, MONITOR, USER, JobGates
from ..queries import enqueue as enqueue_queries
from ..queries import tasks as queries
from ..queries.claim import ClaimedJob
from ..queries.gates import Keys, Released, Where
from ..queries.tasks import Place
from ..queries.workers import queue_range

logger = logging.getLogger("django_tenantqueue")

SETTLE_SECONDS = 1.0
"""So long after a cap was first seen nothing is let through: claims that could not see it are over
by then, and the jobs they took are counted."""
WAIT_SECONDS = 1.0
"""So long a job that was made ready counts as if it had its slot of the task."""
MOST_RELEASED = 100
"""Jobs of a capped task that one release makes ready."""
MOST_STEPS = 200
"""Queues that one release looks at; the next one goes on behind them."""
SET_ASIDE_ROWS = 1000
"""Jobs of closed tasks that are moved out of the line of a gate, or of a queue, in one step."""
OPENED_ROWS = 1000
"""Jobs that are let go in one step when nothing holds their task any more."""
SWEEP_TASKS = 1000
"""Tasks with a line that one step of the sweep looks at."""
MOST_PLACES = 200
"""Tasks whose turns a process remembers."""

_places: dict[tuple[str, str], Place] = {}


@dataclass(slots=True)
class Taken:
    """What became of claimed jobs whose tasks are controlled."""

    granted: list[ClaimedJob] = field(default_factory=list)
    held: list[ClaimedJob] = field(default_factory=list)
    left: list[ClaimedJob] = field(default_factory=list)
    """Somebody holds their rows, or has taken them away: they are to be given back."""


def take(where: Where, worker_id: int, jobs: Sequence[ClaimedJob]) -> Taken:
    """Give claimed jobs slots of their tasks; what gets none stands in the line afterwards.

    When the slots of a task are being given to others for longer than 50 ms, all are held.
    """
    taken = Taken()
    if not jobs:
        return taken
    try:
        verdicts = queries.take_task_slots(where, worker_id, jobs)
    except (psycopg.errors.LockNotAvailable, OperationalError) as error:
        if not isinstance(error.__cause__ or error, psycopg.errors.LockNotAvailable):
            raise
        logger.info("jobs wait in the lines of their tasks: %s", error)
        verdicts = queries.take_task_slots(where, worker_id, jobs, locked=False)
    found = {verdict.job_id: verdict for verdict in verdicts}
    for job in jobs:
        verdict = found.get(job.id)
        if verdict is None:
            taken.left.append(job)
        elif not verdict.is_granted:
            taken.held.append(job)
        elif verdict.is_open:
            taken.granted.append(job)
        else:
            gates = JobGates.read(job.gates) if job.gates else JobGates()
            taken.granted.append(replace(job, gates=gates._replace(task=job.name).text()))
    return taken


def release_tasks(where: Where, names: Collection[str], *, waits: bool = True) -> Released:
    """Make jobs ready from the lines of these tasks, as many as each allows.

    Without `waits` the room is offered anew that jobs have which were made ready a moment ago.
    """
    total = Released()
    for name in sorted(names):
        place = _place(where, name)
        done = queries.release_task(
            where,
            name,
            place,
            wait_seconds=WAIT_SECONDS if waits else None,
            most=MOST_RELEASED,
            steps=MOST_STEPS,
        )
        for job_id, *queue_priority in done.places or ():
            total.note(job_id, queue_priority)
        _note_later(total, map(JobGates.read, done.gates or ()))
        if done.last_queue is not None:
            place = Place(done.last_queue)
        elif done.is_cut:
            place = Place(place.start, done.lane, done.queue_id, done.wrapped)
        else:
            place = Place(place.start)
        _places[_key(where, name)] = place
    while len(_places) > MOST_PLACES:
        _places.pop(next(iter(_places)), None)
    return total


def _key(where: Where, name: str) -> tuple[str, str]:
    return (where if isinstance(where, str) else "", name)


def _place(where: Where, name: str) -> Place:
    """Return where the turns go on; in a new process not always at the first queue."""
    known = _places.get(_key(where, name))
    return known or Place(random.randint(*queue_range(where)))


def let_through(using: str, names: Collection[str]) -> Released:
    """Let a first batch of jobs of these tasks go, whatever holds them now.

    What has gone back to earlier gates is named by `later` of the answer.
    """
    done = release_tasks(using, names, waits=False)
    _open_lines(using, names, done)
    return done


def _open_lines(using: str, names: Collection[str], done: Released) -> None:
    opened = queries.open_task_lines(using, sorted(names), most=OPENED_ROWS)
    done.ready += sum(is_ready for is_ready, _ in opened)
    _note_later(done, (gates for is_ready, gates in opened if not is_ready))


def _note_later(done: Released, jobs: Iterable[JobGates]) -> None:
    for gates in jobs:
        for kind, key in gates.keys().items():
            done.later.setdefault(kind, set()).add(key)


def set_aside_held(where: Where, keys: Keys) -> int:
    """Move jobs of closed tasks out of the lines of these gates; return how many.

    A session is left alone: its jobs start in their order, so it waits for its head.
    """
    return sum(
        queries.set_aside_held(where, kind, keys[kind], most=SET_ASIDE_ROWS)
        for kind in (MONITOR, USER, EXCLUSIVE)
        if keys.get(kind)
    )


def settle(using: Where, seconds: float = SETTLE_SECONDS) -> list[str]:
    """Count what was claimed before its task was capped; return the tasks that were looked at."""
    return queries.mark_task_jobs(using, settle_seconds=seconds)


def sweep(using: str, look: Where | None = None) -> Released:
    """Settle new controls, and let go what tasks allow and has not gone.

    What has gone back to earlier gates is named by `later` of the answer. `look`: see Sweep.step().
    """
    look = look or using
    settle(look)
    found = queries.find_task_lines(look, most=SWEEP_TASKS)
    capped = [name for name, is_capped in found if is_capped]
    free = [name for name, is_capped in found if not is_capped]
    done = release_tasks(using, capped, waits=False)
    if free:
        _open_lines(using, free, done)
    if done.ready and get_settings().notify:
        enqueue_queries.wake_any_workers(using, most=done.ready)
    return done


def forget_places() -> None:
    """Forget whose turn it is, for tests."""
    _places.clear()
