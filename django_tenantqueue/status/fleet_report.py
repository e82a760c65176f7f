"""What an operator asks first: which workers run, what they do, and why jobs do not start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models.functions import Now
from django.utils import timezone

from ..features import Problem
from ..models import Worker
from ..models.worker import Role
from ..queries.control import QueueLoad
from ..queries.fleet import (
    BusyQueue,
    HeldJobs,
    JobCounts,
    RunningClaim,
    count_claims_of_workers,
    list_last_full,
)
from .busy_queues import Busy, walk_busy
from .conditions import Look, problems
from .conditions.look import LEAVING_OR_SILENT
from .display_limits import COUNTED_TO, LISTED, PAGE, READ, TOTAL_COUNTED_TO
from .held import count_held, read_held_of
from .stored_rows import columns_of
from .thresholds import LATE_SECONDS
from .workers import DutyReport, WorkerState, state_of


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker process. `jobs` are the longest of the `claims` jobs that it holds."""

    id: int
    name: str
    host: str
    pid: int
    version: str
    state: WorkerState
    uptime_seconds: float
    heartbeat_seconds_ago: float
    queues: Sequence[str]
    exclude_queues: Sequence[str]
    tenants: Sequence[str]
    threads: int
    async_slots: int
    role: str
    executor: str
    jobs_running: int
    rss_bytes: int | None
    claims_per_second: float
    jobs_per_second: float
    clock_ahead_seconds: float
    last_error: str
    last_error_seconds_ago: float | None
    claims: int
    jobs: Sequence[RunningClaim]


@dataclass(frozen=True, slots=True)
class Need:
    """Whether more workers are needed.

    `startable`: ready jobs, up to COUNTED_TO, that would start at once with more workers;
    `oldest_wait_seconds`: how long the first of them could have started, None without any (those of
    gates and of queues with a rate are left out). `running` of `threads` and `async_slots`: of the
    workers that are alive and neither drain nor stop. A worker runs at most as many of the jobs
    that it holds.
    """

    startable: int
    oldest_wait_seconds: float | None
    running: int
    threads: int
    async_slots: int


@dataclass(frozen=True, slots=True)
class FleetReport:
    """The fleet at one moment.

    `counts` stop at `counted_to`. `held`: what each gate holds for longest. `strays` are claims of
    worker processes that have no row any more. The worst of the `problems` is the first. `muted`:
    those that operators have muted.
    """

    read_at: datetime
    database: str
    workers: Sequence[WorkerReport]
    strays: Sequence[RunningClaim]
    duties: Sequence[DutyReport]
    counts: JobCounts
    held: Sequence[HeldJobs]
    counted_to: int
    need: Need
    problems: Sequence[Problem]
    muted: Sequence[Problem] = ()
    whole: bool = True
    """False: it covers some tenants only, without workers and needs."""


def read_report(using: str, *, jobs: int, busy: Busy | None = None) -> FleetReport:
    """Read what the fleet does, with up to `jobs` running jobs of each worker.

    Up to seventeen statements, and those of features. Their cost does not grow with the history or
    the backlog. `busy`: the queues with jobs, where the caller has read them.
    """
    if busy is None:
        busy = walk_busy(using, listed=LISTED, visits=READ)
    look = Look(using, claims=max(jobs, 1), busy=busy)
    counts = look.counts
    counted, muted = _by_mute(look)
    return FleetReport(
        read_at=counts.read_at,
        database=using,
        workers=[_worker(state, row, look, jobs) for state, row in look.states],
        strays=look.strays,
        duties=look.duties,
        counts=counts,
        held=look.held,
        counted_to=TOTAL_COUNTED_TO,
        need=need_of(using, look.states, look.busy.queues),
        problems=counted,
        muted=muted,
    )


def read_report_of(
    using: str,
    tenants: Collection[str],
    loads: Iterable[QueueLoad],
    busy: Busy | None = None,
) -> FleetReport:
    """Return the report for users who see these tenants only, whose queues have these loads.

    Of the workers it has only which of these queues none of them takes.
    """
    counts = list(loads)
    is_cut = any(max(c.running, c.waiting) >= COUNTED_TO for c in counts)
    ids = [load.queue_id for load in counts]
    look = Look(using, tenants, held=read_held_of(using, ids), busy=busy)
    now = timezone.now()
    counted, muted = _by_mute(look)
    ready, running = sum(c.waiting for c in counts), sum(c.running for c in counts)
    return FleetReport(
        read_at=now,
        database=using,
        workers=(),
        strays=(),
        duties=(),
        counts=JobCounts(ready, 0, running, count_held(look.held), now),
        held=look.held,
        counted_to=COUNTED_TO if is_cut else TOTAL_COUNTED_TO,
        need=Need(0, None, 0, 0, 0),
        problems=counted,
        muted=muted,
        whole=False,
    )


def read_need(using: str) -> Need:
    """Read whether workers are short: up to four statements, for autoscalers."""
    busy = walk_busy(using, listed=0, visits=READ)
    return need_of(using, read_states(using), busy.queues)


def read_states(using: str) -> list[tuple[WorkerState, Worker]]:
    """Return all workers with what they do, those of executors left out."""
    rows = Worker.objects.using(using).filter(role=Role.WORKER).annotate(read_at=Now())
    return [(state_of(row, row.read_at), row) for row in rows]


def need_of(
    using: str, workers: Iterable[tuple[WorkerState, Worker]], queues: Iterable[BusyQueue]
) -> Need:
    """Return the Need of these workers: the jobs that could start, their wait, and what runs."""
    startable = [queue for queue in queues if queue.blocked is None]
    going_on = [
        worker
        for state, worker in workers
        if state not in LEAVING_OR_SILENT and worker.role == Role.WORKER
    ]
    threads = {worker.pk: (worker.threads, worker.async_slots) for worker in going_on}
    held = count_claims_of_workers(using, threads) if threads else {}
    return Need(
        startable=sum(queue.jobs for queue in startable),
        oldest_wait_seconds=_oldest_wait(using, startable),
        running=sum(sum(map(min, threads[pk], jobs)) for pk, jobs in held.items()),
        threads=sum(worker.threads for worker in going_on),
        async_slots=sum(worker.async_slots for worker in going_on),
    )


def _oldest_wait(using: str, queues: Iterable[BusyQueue]) -> float | None:
    """Return for how long a job could have started: without the time when its queue was full.

    This is read for the LISTED longest waits. Shorter ones of late jobs in queues with slots are
    left out.
    """
    waits = {q: q.startable_seconds for q in queues if q.startable_seconds is not None}
    late = [q for q, wait in waits.items() if q.num_slots is not None and wait > LATE_SECONDS]
    late.sort(key=lambda queue: -waits[queue])
    if late:
        full = list_last_full(using, [queue.id for queue in late[:LISTED]], most=PAGE)
        for queue in late[:LISTED]:
            waits[queue] = min(waits[queue], full.get(queue.id, waits[queue]))
        for queue in late[LISTED:]:
            del waits[queue]
    return max(waits.values(), default=None)


def _by_mute(look: Look) -> tuple[list[Problem], list[Problem]]:
    """Return the problems, and those that are muted."""
    found = problems(look)
    counted = [problem for problem in found if problem.muted is None]
    return counted, [problem for problem in found if problem.muted is not None]


def _worker(state: WorkerState, row: Worker, look: Look, jobs: int) -> WorkerReport:
    def ago(moment: datetime) -> float:
        return max((look.now - moment).total_seconds(), 0.0)

    return WorkerReport(
        **columns_of(row, WorkerReport),
        state=state,
        uptime_seconds=ago(row.started_at),
        heartbeat_seconds_ago=ago(row.heartbeat_at),
        last_error_seconds_ago=None if row.last_error_at is None else ago(row.last_error_at),
        claims=look.jobs_of(row),
        jobs=look.claims.get(row.pk, [])[:jobs],
    )
