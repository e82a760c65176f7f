"""Failed runs by task and exception class: how many, since when, where, and their jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Left
from django.utils import timezone

from ..batch_sizes import BATCH
from ..models import Job, TenantQueue
from ..queries.failures import FailedJob, list_failed_jobs, list_jobs_to_retry
from ..queries.figures import (
    ALL,
    LONGEST,
    UNNAMED,
    Failures,
    list_failing_queues,
    list_failures,
)
from ..queries.lists import NEWEST, read_in_order
from ..text import clean_text
from .display_limits import MESSAGE, NAMED, PAGE, PERIODS, READ, starts_of_periods
from .job_pages import QUEUES_APART

WALKED = READ * 5
"""Jobs of a group that one action on some of its queues reads: about a second."""
READ_OF_GROUP = READ // 40
"""Rows of figures of each group in which its queues are found."""

Pair = tuple[str, str]
"""The name of a task and an exception class, as in figures."""


@dataclass(frozen=True, slots=True)
class Group:
    """Failed runs of one task with errors of one class; `queues`: of these alone.

    `task` and `error` are as figures have them. `since` is where the range begins. It does not
    count for jobs that still wait for another attempt.
    """

    task: str
    error: str
    since: datetime
    queues: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class HitQueues:
    """Queues with such failures: those that failed most, and how many more there are.

    `capped`: there may be more than that.
    """

    queues: Sequence[TenantQueue | int]
    more: int = 0
    capped: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A job with its newest error's message."""

    id: int
    state: str
    queue_id: int
    finished_at: datetime | None
    attempt: int
    message: str
    error: str


@dataclass(frozen=True, slots=True)
class FailureLine:
    """One group in a range. `points`: failures in each period."""

    task: str
    error: str
    failed: int
    retried: int
    points: Sequence[int]
    first_at: datetime
    last_at: datetime
    hit: HitQueues
    example: Example | None


@dataclass(frozen=True, slots=True)
class FailurePage:
    """The groups with most failures. `read_from`: figures before it were not read, if not None."""

    since: datetime
    lines: Sequence[FailureLine]
    read_from: datetime | None


@dataclass(frozen=True, slots=True)
class FoundJobs:
    """Jobs of a group, the newest first. `more`: there are, or may be, more of them."""

    ids: Sequence[int]
    more: bool


def figure_name(text: str) -> str:
    """Return a task's name or an error's class as figures have it."""
    return clean_text(text)[:LONGEST] or UNNAMED


def read_failures(
    using: str,
    hours: int,
    *,
    queues: Sequence[int] | None = None,
    task: str | None = None,
    error: str | None = None,
    queues_listed: int = NAMED,
) -> FailurePage:
    """Read the groups of a range of `hours`, of some queues, a task, or an exception class.

    Four statements at most. None walks the history.
    """
    starts = starts_of_periods(hours, timezone.now())
    since = starts[0]
    chosen = (ALL,) if queues is None else tuple(queues[:QUEUES_APART])
    with read_in_order(using):
        found, read_from = list_failures(
            using,
            since=since,
            seconds=PERIODS[hours],
            groups=PAGE,
            most=READ // len(chosen) if chosen else READ,
            queues=chosen,
            task=task,
            error=error,
        )
        grouped: defaultdict[Pair, list[Failures]] = defaultdict(list)
        for row in found:
            grouped[row.task, row.error].append(row)
        if queues is None:
            hit = _hit_queues(using, list(grouped), since=since, listed=queues_listed)
        else:
            hit = _hit_among(using, grouped, listed=queues_listed)
    places = {start: number for number, start in enumerate(starts)}
    newest = {
        pair: max((row.last_job_id or 0 for row in rows), default=0)
        for pair, rows in grouped.items()
    }
    examples = describe(using, [job_id for job_id in newest.values() if job_id])
    lines = []
    for (name, kind), rows in grouped.items():
        points = [0] * len(starts)
        for row in rows:
            points[places.get(row.period, -1)] += row.failed + row.retried
        lines.append(
            FailureLine(
                task=name,
                error=kind,
                failed=sum(row.failed for row in rows),
                retried=sum(row.retried for row in rows),
                points=points,
                first_at=min(row.first_at for row in rows),
                last_at=max(row.last_at for row in rows),
                hit=hit.get((name, kind), HitQueues(())),
                example=examples.get(newest[name, kind]),
            )
        )
    lines.sort(key=lambda line: (-(line.failed + line.retried), line.task, line.error))
    return FailurePage(since, lines, read_from)


def _hit_queues(
    using: str, pairs: Sequence[Pair], *, since: datetime, listed: int
) -> dict[Pair, HitQueues]:
    if not pairs:
        return {}
    rows = list_failing_queues(using, pairs, since=since, listed=listed, most=READ_OF_GROUP)
    queues = TenantQueue.objects.using(using).in_bulk({row.queue_id for row in rows})
    found = {}
    for number, pair in enumerate(pairs):
        mine = [row for row in rows if row.pair == number]
        if mine:
            named = [queues.get(row.queue_id, row.queue_id) for row in mine]
            found[pair] = HitQueues(named, mine[0].queues - len(mine), mine[0].capped)
    return found


def _hit_among(
    using: str, grouped: Mapping[Pair, Sequence[Failures]], *, listed: int
) -> dict[Pair, HitQueues]:
    ids = {row.queue_id for rows in grouped.values() for row in rows}
    queues = TenantQueue.objects.using(using).in_bulk(ids)
    found = {}
    for pair, rows in grouped.items():
        counts: Counter[int] = Counter()
        for row in rows:
            counts[row.queue_id] += row.failed + row.retried
        named = [queues.get(queue_id, queue_id) for queue_id, _ in counts.most_common(listed)]
        found[pair] = HitQueues(named, max(0, len(counts) - listed))
    return found


def describe(using: str, ids: Sequence[int]) -> dict[int, Example]:
    """Return what lists show of jobs, by id. Arguments and tracebacks are not read."""
    newest = KeyTransform("-1", "errors")
    jobs = (
        Job.objects.using(using)
        .filter(pk__in=ids)
        .order_by()
        .annotate(
            message=Left(KeyTextTransform("message", newest), MESSAGE),
            error=Left(KeyTextTransform("class", newest), LONGEST),
        )
        .values_list("pk", "state", "queue_id", "finished_at", "attempt", "message", "error")
    )
    return {
        pk: Example(pk, state, queue_id, finished_at, attempt, message or "", error or UNNAMED)
        for pk, state, queue_id, finished_at, attempt, message, error in jobs
    }


def walk_failed(using: str, group: Group, *, step: int = BATCH) -> Iterator[list[int]]:
    """Yield the ids of jobs of a group that ended in error, the newest first, in steps.

    A job that fails again meanwhile is not found again. A step may be empty.
    """
    last: FailedJob | None = None
    while True:
        rows = list_failed_jobs(
            using, group.task, group.error, since=group.since, before=last, most=step
        )
        yield [row.id for row in rows if group.queues is None or row.queue_id in group.queues]
        if len(rows) < step:
            return
        last = rows[-1]


def walk_waiting(using: str, group: Group, *, step: int = BATCH) -> Iterator[list[int]]:
    """Yield the ids of jobs of a group that wait for another attempt, the newest first."""
    before = NEWEST
    while True:
        rows = list_jobs_to_retry(using, group.task, group.error, before=before, most=step)
        yield [row.id for row in rows if group.queues is None or row.queue_id in group.queues]
        if len(rows) < step:
            return
        before = rows[-1].id


Walk = Callable[..., Iterator[list[int]]]


def find(walk: Walk, using: str, group: Group, *, most: int, walked: int) -> FoundJobs:
    """Return up to `most` jobs that a walk finds. It reads `walked` jobs of the group."""
    ids: list[int] = []
    step = min(most + 1, BATCH) if group.queues is None else BATCH
    with read_in_order(using):
        for number, found in enumerate(walk(using, group, step=step), 1):
            ids += found
            if len(ids) > most:
                return FoundJobs(ids[:most], more=True)
            if number * step >= walked and group.queues is not None:
                return FoundJobs(ids, more=True)
    return FoundJobs(ids, more=False)
