"""Rescue: take jobs back from worker processes that died."""

from __future__ import annotations

import json
import logging
import math
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import DatabaseError, transaction

from ..conf import get_settings
from ..execution.job_log import about_id
from ..execution.outcome import backoff_seconds
from ..models import Change, Worker
from ..models.worker import SILENT, Role
from ..queries import enqueue, rescue
from ..queries.base import Where
from ..queries.figures import LONGEST, Counts, Key, add_figures, with_totals
from ..queries.rescue import Held, Verdict
from ..states import State
from ..stored_error import HARD_TIME_LIMIT_EXCEEDED, WORKER_DIED, stored_error
from .actor import acting_as
from .changes import MOST_IDS, Edit, record_rows

logger = logging.getLogger("django_tenantqueue")

SETTLE_SECONDS = 10.0
"""For this time after the start of the server no worker counts as dead: supervisors reconnect."""
LOOK_SECONDS = 4.0
"""Time between the two checks that must find a worker dead: more than LEASE_SECONDS."""


@dataclass(frozen=True, slots=True)
class DeathReport:
    """How a worker process died, as far as is known.

    `started`: the jobs it had begun; None: unknown, all that it held may have begun. `culprit`: the
    job for whose sake it was killed; nothing is held against the others. `crashed`: it alone died,
    by itself or of its memory, so that one of its jobs is likely to be the reason. `blameless`: it
    was stopped; no job loses an attempt. `is_recorded`: the list of changes gets an entry. Workers
    that were stopped, or killed for one job, get none: the error of that job says it.
    """

    reason: str
    started: frozenset[int] | None = None
    culprit: int | None = None
    crashed: bool = False
    blameless: bool = False
    is_recorded: bool = True
    error: str = WORKER_DIED
    """The `class` of the error that is kept with its jobs."""


@dataclass(frozen=True, slots=True)
class Rescued:
    """What became of the jobs of a dead worker, by id."""

    returned: list[int]
    """Ready again, no attempt counted."""
    retried: list[int]
    """Ready again, now or after a while, with the attempt counted."""
    ended: list[int]
    """Attempts spent, or cancelled: final."""
    complete: bool
    """Nothing is left, and the worker's row is gone. Else the row of a job is locked."""

    def __bool__(self) -> bool:
        return bool(self.returned or self.retried or self.ended)


def judge(held: list[Held], death: DeathReport) -> list[Verdict]:
    """Say which jobs of a dead worker process count the attempt, and which of them end.

    When a process crashed under several jobs, those of them count that have seen the most crashes:
    a job that kills its process each time soon stands alone, and its neighbours lose nothing more.
    """
    begun = [job for job in held if job.running or death.started is None or job.id in death.started]
    if death.blameless:
        begun = []
    elif death.culprit is not None:
        begun = [job for job in begun if job.id == death.culprit]
    elif death.crashed:
        most = max((job.crashes for job in begun), default=0)
        begun = [job for job in begun if job.crashes == most]
    counted = {job.id for job in begun}
    return [_verdict(job, job.id in counted, death) for job in held]


def _verdict(job: Held, counted: bool, death: DeathReport) -> Verdict:
    ends = job.cancel or (counted and job.attempt >= job.max_attempts)
    delay = 0.0
    if counted and not ends:
        if death.culprit is not None:
            delay = backoff_seconds(job.attempt)
        elif death.crashed and job.crashes:
            # long enough for other suspects to begin without it
            delay = max(random.uniform(1.0, 2.0), backoff_seconds(job.crashes))
    return Verdict(job.id, ends, counted, delay)


def rescue_worker(using: str, worker_id: int, death: DeathReport) -> Rescued:
    """Take back the jobs of a dead worker process and delete its row.

    Jobs that count the attempt keep the reason as their error; they run again while they have
    attempts, else they end in `error`. The others are ready again as if never claimed.
    """
    settings = get_settings()
    jobs: dict[int, Held] = {}

    def judged(held: list[Held]) -> list[Verdict]:
        jobs.update({job.id: job for job in held})
        return judge(held, death)

    # the statement adds each job's attempt
    error = stored_error(death.error, death.reason)
    with transaction.atomic(using=using):
        worker = _lock_recorded(using, worker_id) if death.is_recorded else None
        verdicts, complete = rescue.rescue_worker(
            using,
            worker_id,
            judged,
            error=json.dumps(error),
            crashed=death.crashed,
            max_errors=settings.max_errors,
        )
        if complete and worker is not None:
            said = {
                "host": worker.host,
                "cause": death.reason.removeprefix("its "),
                "version": worker.version,
                "started_at": worker.started_at,
                "jobs": sorted(jobs)[:MOST_IDS],
            }
            with acting_as("", Change.Source.WORKER):
                record_rows(using, Change.Action.DIE, [worker], Edit({}, said))
    judged_jobs = [(jobs[verdict.id], verdict) for verdict in verdicts]
    _log_ended(judged_jobs, death)
    rescued = Rescued(
        returned=[v.id for v in verdicts if not v.ends and not v.counted],
        retried=[v.id for v in verdicts if not v.ends and v.counted],
        ended=[v.id for v in verdicts if v.ends],
        complete=complete,
    )
    if rescued:
        logger.warning(
            "worker %s died (%s): %d jobs are retried, %d returned without an attempt, %d ended",
            worker_id,
            death.reason,
            len(rescued.retried),
            len(rescued.returned),
            len(rescued.ended),
        )
    if settings.figures:
        _count(using, worker_id, judged_jobs, error["class"])
    if settings.notify and not settings.pooler:
        # one more than there are jobs: an enqueuer may have notified the dead worker
        ready = len(rescued.retried) + len(rescued.returned)
        enqueue.wake_any_workers(using, most=ready + 1)
    return rescued


def _lock_recorded(using: str, worker_id: int) -> Worker | None:
    """Return the row of a dead worker; None when another process is about to delete it."""
    rows = Worker.objects.using(using).select_for_update(skip_locked=True, no_key=True)
    return rows.filter(pk=worker_id).first()


def _log_ended(jobs: Iterable[tuple[Held, Verdict]], death: DeathReport) -> None:
    for job, verdict in jobs:
        if verdict.ends and not job.cancel:
            logger.error(
                "job %s (%s) ended in error because its worker died: %s",
                job.id,
                job.task,
                death.reason,
                extra={**about_id(job.id), "task": job.task, "outcome": State.ERROR.value},
            )


def _count(using: str, worker_id: int, jobs: Iterable[tuple[Held, Verdict]], error: str) -> None:
    """Add the attempts that a dead worker's jobs have lost to the figures. Errors are logged."""
    counts: defaultdict[Key, Counts] = defaultdict(Counts)
    for job, verdict in jobs:
        name = job.task[:LONGEST]
        if verdict.ends and job.cancel:
            counts[job.queue_id, name, ""].cancelled += 1
        elif verdict.counted:
            of_error = counts[job.queue_id, name, error[:LONGEST]]
            of_error.last_job_id = max(of_error.last_job_id or 0, job.id)
            for row in (of_error, counts[job.queue_id, name, ""]):
                row.failed += verdict.ends
                row.retried += not verdict.ends
    if not counts:
        return
    try:
        with transaction.atomic(using=using):
            add_figures(using, with_totals(counts))
    except DatabaseError:
        logger.warning("counting the lost attempts of worker %s failed", worker_id, exc_info=True)


def last_words(job_id: int, reason: str) -> str:
    """Return the last error of an executor's process that kills itself because of a job."""
    return f"killed for job {job_id}: {reason}"


_LAST_WORDS = re.compile(last_words(0, "(.*)").replace("0", r"(\d+)"), re.DOTALL)


def _death_of(using: str, worker_id: int) -> DeathReport:
    row = Worker.objects.using(using).filter(pk=worker_id).first()
    if row is not None and row.role == Role.DISPATCHER:
        # what has begun is not its own any more
        return DeathReport("the dispatcher is gone", blameless=True)
    if row is not None and row.role == Role.RUNNER:
        words = _LAST_WORDS.fullmatch(row.last_error)
        if words is not None:
            return DeathReport(words[2], culprit=int(words[1]), error=HARD_TIME_LIMIT_EXCEEDED)
        return DeathReport(f"the process {row.name} of the executor {row.executor} is gone")
    return DeathReport("the worker process and its supervisor are gone")


class DeadWorkerFinder:
    """Finds workers that have looked dead for a while, and rescues their jobs."""

    def __init__(self) -> None:
        self._suspects: dict[int, float] = {}

    def forget(self) -> None:
        """Drop all suspicions: what was seen before may be of another server."""
        self._suspects.clear()

    def seconds_to_rescue(self, now: float) -> float:
        """Return the seconds until a suspect counts as dead; inf when none is to do so."""
        left = (since + LOOK_SECONDS - now for since in self._suspects.values())
        return min((seconds for seconds in left if seconds > 0), default=math.inf)

    def look(self, using: str, now: float, on: Where | None = None) -> int:
        """Look once; return how many dead workers' jobs were rescued. `now` is monotonic.

        `on` is a connection to look on that keeps its plans; None: as all else, on `using`.
        """
        began = time.monotonic()
        found = rescue.find_dead_workers(
            on or using,
            settle_seconds=SETTLE_SECONDS,
            lease_seconds=SILENT.total_seconds(),
        )
        # a lock that was seen free may have been let go at the end of the statement
        seen_at = now + time.monotonic() - began
        # one that has given a sign of life since it was first seen is seen for the first time
        since = {w: self._suspects.get(w, seen_at) for w in found}
        self._suspects = {w: s if found[w] > seen_at - s else seen_at for w, s in since.items()}
        dead = [w for w, since in self._suspects.items() if now - since >= LOOK_SECONDS]
        for worker_id in dead:
            death = _death_of(using, worker_id)
            if rescue_worker(using, worker_id, death).complete:
                del self._suspects[worker_id]
        return len(dead)
