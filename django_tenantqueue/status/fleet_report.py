"""What an operator asks first: which workers run, what they do, and why jobs do not start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models.functions import Now
from django.utils import timezone

from ..conf import get_settings
from ..execution.outcome import UNKNOWN_CLASS
from ..features import Feature, Problem, hooks
from ..models import Worker
from ..models.figure import FAILING_SHARE
from ..models.worker import SILENT, Role
from ..queries import fleet as queries
from ..queries.control import QueueLoad
from ..queries.figures import list_failing_tasks
from ..queries.fleet import HeldJobs, JobCounts, RunningClaim, Startable
from ..queries.workers import connection_budget
from .amounts import COUNTED_TO, NAMED, PERIODS, TOTAL_COUNTED_TO, VISITED
from .clock import CLOCK_SECONDS
from .deaths import list_deaths
from .figures import counted_text
from .held import count_held, read_held, read_held_of
from .problems import (
    problem_of_clocks,
    problem_of_connections,
    problem_of_deaths,
    problem_of_halted,
    problem_of_unserved,
    problem_of_untaken,
    problems_of_claims,
    problems_of_duties,
    problems_of_failures,
    problems_of_held,
    problems_of_lines,
    problems_of_tasks,
    problems_of_workers,
)
from .queue_loads import untaken_queues
from .stored_rows import columns_of
from .takers import Takers
from .workers import LEAVING, DutyReport, WorkerState, list_duties, list_running, state_of

FAILING = timedelta(hours=min(PERIODS))
"""The time in which failures of a task, and deaths of workers, are a problem: the shortest range of
a page."""
FAILING_LEAST = 10
"""Failed runs from which a task may be a problem. Halved: rare tasks are reported after fewer
failures. Doubled: later."""

LEAVING_OR_SILENT = (*LEAVING, WorkerState.SILENT)


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
    """Whether workers are short.

    `startable`: ready jobs, up to COUNTED_TO, that would start at once if there were more workers;
    `oldest_wait_seconds`: since when the first of them is ready, None when there is none (those of
    gates are left out). `running` of `threads` and `async_slots`: what the workers that are alive
    and go on said with their last heartbeats.
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
    worker processes that have no row any more. The worst of the `problems` is the first.
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
    whole: bool = True
    """False: it tells of some tenants only, and nothing of workers and needs."""


def read_report(using: str, *, jobs: int) -> FleetReport:
    """Read what the fleet does, with up to `jobs` running jobs of each worker.

    Up to thirteen statements, and those of features. Their cost does not grow with the history or
    the backlog.
    """
    counts = queries.count_jobs(using, most=TOTAL_COUNTED_TO)
    # The claims first: the worker of a claim that is made in between is found all the same.
    claims = _by_worker(list_running(using, most=max(jobs, 1)))
    rows = list(Worker.objects.using(using).order_by("host", "id"))
    workers = [_worker(row, counts.read_at, claims.pop(row.pk, ()), jobs) for row in rows]
    strays = [claim for of_worker in claims.values() for claim in of_worker]
    duties = list_duties(using)
    stuck = queries.list_stuck_queues(using, most=VISITED, silent_seconds=SILENT.total_seconds())
    lines = queries.list_stuck_lines(using, most=VISITED)
    held = read_held(using)
    unknown = queries.list_unknown_tasks(using, most=VISITED, error_class=UNKNOWN_CLASS)
    failing = list_failing_tasks(
        using,
        since=counts.read_at - FAILING,
        least=FAILING_LEAST,
        share=FAILING_SHARE,
        most=NAMED,
    )
    going_on = [row for row in rows if state_of(row, counts.read_at) not in LEAVING_OR_SILENT]
    takers = Takers.of(row for row in going_on if row.role != Role.RUNNER)
    ready = {(queue.tenant, queue.name) for queue in stuck}
    unserved = untaken_queues(using, takers, most=VISITED) if going_on else []
    return FleetReport(
        read_at=counts.read_at,
        database=using,
        workers=workers,
        strays=strays,
        duties=duties,
        counts=counts,
        held=held,
        counted_to=TOTAL_COUNTED_TO,
        need=need_of([(worker.state, worker) for worker in workers], _count_startable(using)),
        problems=[
            *problems_of_workers(
                [worker.state for worker in workers],
                counted_text(counts.ready, TOTAL_COUNTED_TO) if counts.ready else "",
                stuck,
            ),
            *problem_of_unserved([queue for queue in unserved if queue not in ready]),
            *([] if get_settings().pooler else problem_of_connections(*connection_budget(using))),
            *problem_of_deaths(list_deaths(using, counts.read_at - FAILING), counts.read_at),
            *problem_of_clocks(
                {
                    worker.host: worker.clock_ahead_seconds
                    for worker in workers
                    if worker.state != WorkerState.SILENT
                    and abs(worker.clock_ahead_seconds) > CLOCK_SECONDS
                }
            ),
            *problems_of_tasks(unknown),
            *problems_of_failures(failing),
            *problems_of_lines(lines),
            *problems_of_held(held, lines),
            *problems_of_claims(strays),
            *_problems_of_features(using, None),
            *problems_of_duties(
                duties, is_served=any(worker.state != WorkerState.SILENT for worker in workers)
            ),
        ],
    )


def read_report_of(using: str, tenants: Collection[str], loads: Iterable[QueueLoad]) -> FleetReport:
    """Return what users are shown who see these tenants only, whose queues have these loads.

    It tells nothing of the workers, except which of these queues none of them takes.
    """
    now = timezone.now()
    counts = list(loads)
    is_cut = any(max(c.running, c.waiting) >= COUNTED_TO for c in counts)
    silent_seconds = SILENT.total_seconds()
    stuck = queries.list_stuck_queues(using, most=VISITED, silent_seconds=silent_seconds)
    stuck = [queue for queue in stuck if queue.tenant in tenants]
    lines = queries.list_stuck_lines(using, most=VISITED)
    held = read_held_of(using, [load.queue_id for load in counts])
    ready, running = sum(c.waiting for c in counts), sum(c.running for c in counts)
    return FleetReport(
        read_at=now,
        database=using,
        workers=(),
        strays=(),
        duties=(),
        counts=JobCounts(ready, 0, running, count_held(held), now),
        held=held,
        counted_to=COUNTED_TO if is_cut else TOTAL_COUNTED_TO,
        need=Need(0, None, 0, 0, 0),
        problems=[
            *problem_of_untaken(stuck),
            *problem_of_halted(stuck),
            *problems_of_lines(
                [line for line in lines if line.kind != "task" and line.tenant in tenants]
            ),
            *problems_of_held(held, lines),
            *_problems_of_features(using, tenants),
        ],
        whole=False,
    )


def _problems_of_features(using: str, tenants: Collection[str] | None) -> Iterable[Problem]:
    return (problem for hook in hooks(Feature.problems) for problem in hook(using, tenants))


def read_need(using: str) -> Need:
    """Read whether workers are short: two statements, for autoscalers."""
    return need_of(read_states(using), _count_startable(using))


def read_states(using: str) -> list[tuple[WorkerState, Worker]]:
    """Return all workers with what they do, those of executors left out."""
    rows = Worker.objects.using(using).filter(role=Role.WORKER).annotate(read_at=Now())
    return [(state_of(row, row.read_at), row) for row in rows]


def _count_startable(using: str) -> Startable:
    return queries.count_startable(using, most=COUNTED_TO, visits=VISITED)


def need_of(
    workers: Iterable[tuple[WorkerState, Worker | WorkerReport]], startable: Startable
) -> Need:
    """Return whether these workers are short."""
    going_on = [
        worker
        for state, worker in workers
        if state not in LEAVING_OR_SILENT and worker.role == Role.WORKER
    ]
    return Need(
        startable=startable.jobs,
        oldest_wait_seconds=startable.oldest_wait_seconds,
        running=sum(worker.jobs_running for worker in going_on),
        threads=sum(worker.threads for worker in going_on),
        async_slots=sum(worker.async_slots for worker in going_on),
    )


def _by_worker(claims: Iterable[RunningClaim]) -> dict[int | None, list[RunningClaim]]:
    found: dict[int | None, list[RunningClaim]] = {}
    for claim in claims:
        found.setdefault(claim.worker_id, []).append(claim)
    return found


def _worker(row: Worker, now: datetime, claims: Sequence[RunningClaim], jobs: int) -> WorkerReport:
    def ago(moment: datetime) -> float:
        return max((now - moment).total_seconds(), 0.0)

    held = claims[0].of_worker if claims else 0
    return WorkerReport(
        **columns_of(row, WorkerReport),
        state=state_of(row, now, held),
        uptime_seconds=ago(row.started_at),
        heartbeat_seconds_ago=ago(row.heartbeat_at),
        last_error_seconds_ago=None if row.last_error_at is None else ago(row.last_error_at),
        claims=held,
        jobs=claims[:jobs],
    )
