"""The dashboard's data: problems, the fleet, the queues and the tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..histogram import percentile
from ..queries.control import QueueLoad
from ..queries.figures import (
    Counts,
    Period,
    list_figures,
    list_figures_of_queues,
    list_task_figures,
    sum_of_queues,
)
from ..queries.fleet import BusyQueue
from ..queries.lists import read_in_order
from .busy_queues import Busy, busy_among, walk_busy
from .display_limits import LISTED, PERIODS, VISITED, starts_of_periods
from .fleet_report import FleetReport, read_report, read_report_of
from .job_pages import queue_ids
from .queue_loads import count_taken, loads, sum_of_slots, sum_of_taken_slots


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue: its jobs now, and what happened to its jobs in the range."""

    queue: BusyQueue
    load: QueueLoad
    counts: Counts


@dataclass(frozen=True, slots=True)
class TaskLine:
    """What happened to the jobs of one task in the range, by period."""

    task: str
    counts: Counts
    points: Sequence[int]
    """Ends in each period."""

    @property
    def mean_run_seconds(self) -> float | None:
        """Mean run time; None when none has run."""
        ran = sum(self.counts.runs)
        return self.counts.run_seconds / ran if ran else None


@dataclass(frozen=True, slots=True)
class Overview:
    """All of the page. `started`, `ended`, `failed` and `waits` have one value for each period.

    `counts` are of the whole range. The rates are those of the last whole period. `slots`: all
    slots of the queues that are not paused and have a limit. `taken`: those of them that are taken.
    `seen`: the queues of the tenants; without tenants, the busy ones.
    """

    read_at: datetime
    hours: int
    period_seconds: float
    report: FleetReport
    counts: Counts
    started: Sequence[int]
    ended: Sequence[int]
    failed: Sequence[int]
    waits: Sequence[float]
    slots: int
    taken: int
    seen: Sequence[BusyQueue]
    queues: Sequence[QueueLine]
    tasks: Sequence[TaskLine]

    @property
    def started_per_second(self) -> float:
        """Starts per second in the last whole period."""
        return self.started[-2] / self.period_seconds

    @property
    def ended_per_second(self) -> float:
        """Ends per second in the last whole period."""
        return self.ended[-2] / self.period_seconds

    def wait(self, share: float) -> float | None:
        """Return the wait below which this share of the starts lay."""
        return percentile(self.counts.waits, share)


def read_overview(
    using: str, hours: int, tenants: Collection[str] | None = None, *, idle: bool = False
) -> Overview:
    """Read the page; `hours` is a key of PERIODS. No statement walks the history or the backlog.

    With `tenants`, of VISITED queues of these tenants alone; with `idle`, also of idle ones.
    """
    with read_in_order(using):
        if tenants is None:
            seen: Sequence[int] | None = None
            busy = walk_busy(using, listed=LISTED)
            report = read_report(using, jobs=0, busy=busy)
            found = loads(using, [queue.id for queue in busy.queues[:LISTED]])
        else:
            ids = queue_ids(using, tenants=tenants)
            seen = ids[:VISITED]
            found = loads(using, seen)
            busy = Busy(busy_among(using, found.values(), idle=True), len(ids) > VISITED)
            report = read_report_of(using, tenants, found.values(), busy)
    queues = [q for q in busy.queues if idle or q.active or q.wait_seconds is not None][:LISTED]
    seconds = PERIODS[hours]
    places = starts_of_periods(hours, report.read_at)
    since = places[0]
    if seen is None:
        of_all = list_figures(using, since=since, seconds=seconds)
        of_tasks = list_task_figures(using, since=since, seconds=seconds, most=LISTED)
    else:
        of_all = of_tasks = list_figures_of_queues(using, seen, since=since, seconds=seconds)
    sums: dict[datetime, Counts] = {at: Counts() for at in places}
    for period in of_all:
        sums.setdefault(period.at, Counts()).add(period.counts)
    series = [sums[at] for at in places]
    total = Counts()
    for counts in series:
        total.add(counts)
    of_queues = sum_of_queues(using, [queue.id for queue in queues], since=since)
    if seen is None:
        slots, taken = sum_of_slots(using), sum_of_taken_slots(using)
    else:
        limited = {q.id: q.num_slots or 0 for q in busy.queues if _has_slots(q)}
        slots, taken = sum(limited.values()), count_taken(using, limited)
    return Overview(
        read_at=report.read_at,
        hours=hours,
        period_seconds=seconds,
        report=report,
        counts=total,
        started=[counts.started for counts in series],
        ended=[counts.ended for counts in series],
        failed=[counts.failures for counts in series],
        waits=[percentile(counts.waits, 0.95) or 0.0 for counts in series],
        slots=slots,
        taken=taken,
        seen=busy.queues,
        queues=[
            QueueLine(queue, found[queue.id], of_queues.get(queue.id, Counts())) for queue in queues
        ],
        tasks=_tasks(of_tasks, places),
    )


def _has_slots(queue: BusyQueue) -> bool:
    return not queue.paused and queue.num_slots is not None


def _tasks(periods: Sequence[Period], places: Sequence[datetime]) -> list[TaskLine]:
    """Return up to LISTED tasks, the longest first, each with its ends by period."""
    totals: dict[str, Counts] = {}
    ends: dict[str, dict[datetime, int]] = {}
    for period in periods:
        totals.setdefault(period.task, Counts()).add(period.counts)
        ends.setdefault(period.task, {})[period.at] = period.counts.ended
    longest = sorted(totals, key=lambda name: (-totals[name].run_seconds, name))
    return [
        TaskLine(name, totals[name], [ends[name].get(at, 0) for at in places])
        for name in longest[:LISTED]
    ]
