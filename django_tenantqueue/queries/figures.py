"""Statements about minute figures."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .base import Where, array, execute_bounded, fetch, text_array

ALL = 0
"""In place of a queue's id: the jobs of all queues."""
MOST_ROWS = 300
"""Most rows of each kind that one call adds to. Further ones count only in the figures of all."""
LONGEST = 300
"""Characters of a task's name or an exception class that figures keep: an index has them."""
UNNAMED = "?"
"""Stands for an unknown class."""


@dataclass(slots=True)
class Counts:
    """Counts of some jobs.

    `waits` and `runs` are durations counted by their places (see `histogram`).
    """

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    cancelled: int = 0
    wait_seconds: float = 0.0
    run_seconds: float = 0.0
    waits: list[int] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    last_job_id: int | None = None

    @property
    def ended(self) -> int:
        """Runs that ended, those that another attempt follows included."""
        return self.succeeded + self.failed + self.retried + self.cancelled

    @property
    def failures(self) -> int:
        """Runs that failed, those that another attempt follows included."""
        return self.failed + self.retried

    @property
    def failing(self) -> float | None:
        """Share of the runs that failed; None without any."""
        return self.failures / self.ended if self.ended else None

    def add(self, other: Counts) -> None:
        """Add the counts of other jobs."""
        for name in NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, theirs in ((self.waits, other.waits), (self.runs, other.runs)):
            mine.extend([0] * (len(theirs) - len(mine)))
            for at, count in enumerate(theirs):
                mine[at] += count
        if other.last_job_id is not None:
            self.last_job_id = max(self.last_job_id or 0, other.last_job_id)


NUMBERS = (
    "started",
    "succeeded",
    "failed",
    "retried",
    "cancelled",
    "wait_seconds",
    "run_seconds",
)
Key = tuple[int, str, str]
"""Queue (ALL: any), task ("": any), and class of the error ("": any outcome)."""


def with_totals(counts: Mapping[Key, Counts]) -> dict[Key, Counts]:
    """Return the busiest of these counts of queues, with those of all queues.

    The totals are those of each task, of each task and exception class, and of all jobs.
    """
    totals: defaultdict[Key, Counts] = defaultdict(Counts)
    everything = Counts()
    for (_, name, error), row in counts.items():
        totals[ALL, name, error].add(row)
        if not error:
            everything.add(row)
    return {
        (ALL, "", ""): everything,
        **_busiest(totals, errors=False),
        **_busiest(totals, errors=True),
        **_busiest(counts, errors=False),
        **_busiest(counts, errors=True),
    }


def _busiest(counts: Mapping[Key, Counts], *, errors: bool) -> dict[Key, Counts]:
    chosen = [key for key in counts if bool(key[2]) == errors]
    return {
        key: counts[key]
        for key in heapq.nlargest(MOST_ROWS, chosen, key=lambda key: counts[key].ended)
    }


def add_figures(where: Where, counts: dict[Key, Counts]) -> None:
    """Add counts to the figures of this minute."""
    keys, rows = list(counts), list(counts.values())
    params = {
        "queue_ids": array(key[0] for key in keys),
        "tasks": text_array(key[1] for key in keys),
        "errors": text_array(key[2] for key in keys),
        "waits": text_array(f"{{{','.join(map(str, row.waits))}}}" for row in rows),
        "runs": text_array(f"{{{','.join(map(str, row.runs))}}}" for row in rows),
        "last_job_ids": array("NULL" if r.last_job_id is None else r.last_job_id for r in rows),
        **{name: array(getattr(row, name) for row in rows) for name in NUMBERS},
    }
    execute_bounded(where, "add_figures", params)


def thin_figures(using: str, *, minutes: int, into: int | None, before: datetime, most: int) -> int:
    """Merge rows of `minutes` from before `before` into rows of `into` minutes, or delete them.

    Return how many there were, at most `most`.
    """
    params = {"minutes": minutes, "into": into, "before": before, "most": most}
    count: int = fetch(using, "thin_figures", params)[0][0]
    return count


@dataclass(frozen=True, slots=True)
class Period:
    """The counts of one period of time, of one task or of all ("")."""

    at: datetime
    task: str
    counts: Counts


def list_figures(using: str, *, since: datetime, seconds: float) -> list[Period]:
    """Return the counts of all jobs since `since`, in periods of `seconds`."""
    return _periods(using, "list_figures", {"since": since, "seconds": seconds})


def list_task_figures(using: str, *, since: datetime, seconds: float, most: int) -> list[Period]:
    """Return the counts of the `most` tasks that ran longest since `since`, by period."""
    params = {"since": since, "seconds": seconds, "most": most}
    return _periods(using, "list_task_figures", params)


def list_figures_of_queues(
    using: str, queue_ids: Sequence[int], *, since: datetime, seconds: float
) -> list[Period]:
    """Return the counts of each task in some queues since `since`, in periods of `seconds`."""
    params = {"queue_ids": array(queue_ids), "since": since, "seconds": seconds}
    return _periods(using, "list_figures_of_queues", params)


def list_figures_of_task(
    using: str, task: str, *, since: datetime, queue_ids: Sequence[int] = (ALL,)
) -> list[Period]:
    """Return the counts of a task in some queues since `since`, by minute, hour or day."""
    params = {"queue_ids": array(queue_ids), "since": since, "task": task}
    return _periods(using, "list_figures_of_task", params)


def _periods(using: str, name: str, params: Mapping[str, Any]) -> list[Period]:
    rows = fetch(using, name, params)
    return [Period(row[0], row[1], Counts(*row[2:])) for row in rows]


def sum_of_queues(using: str, queue_ids: Sequence[int], *, since: datetime) -> dict[int, Counts]:
    """Return the counts of queues since `since`; those without figures are left out."""
    params = {"queue_ids": array(queue_ids), "since": since}
    return {row[0]: Counts(*row[1:]) for row in fetch(using, "sum_of_queues", params)}


@dataclass(frozen=True, slots=True)
class QueueFailures:
    """Failed runs of one queue. `capped`: there may be more queues than were read."""

    queue_id: int
    failed: int
    retried: int
    capped: bool


def sum_failures_by_queue(using: str, *, since: datetime, visits: int) -> list[QueueFailures]:
    """Return the failures since `since` by queue; reads up to `visits` queues."""
    found = fetch(using, "sum_failures_by_queue", {"since": since, "visits": visits})
    return [QueueFailures(*row) for row in found]


@dataclass(frozen=True, slots=True)
class Failures:
    """Runs of a task that ended in one period with errors of one class, of a queue or of ALL."""

    task: str
    error: str
    period: datetime
    failed: int
    retried: int
    first_at: datetime
    last_at: datetime
    last_job_id: int | None
    queue_id: int


def list_failures(
    using: str,
    *,
    since: datetime,
    seconds: float,
    groups: int,
    most: int,
    queues: Sequence[int] = (ALL,),
    task: str | None = None,
    error: str | None = None,
) -> tuple[list[Failures], datetime | None]:
    """Return the failures since `since` of the `groups` most frequent pairs of task and class.

    They are in periods of `seconds`, in no order. The newest `most` rows of each queue are read:
    the second value is the moment from which on all were, None when that is `since`.
    """
    params = {
        "since": since,
        "seconds": seconds,
        "groups": groups,
        "most": most,
        "queues": array(queues),
        "task": task,
        "error": error,
    }
    rows = fetch(using, "list_failures", params)
    return [Failures(*row[1:]) for row in rows if row[1] is not None], rows[0][0]


@dataclass(frozen=True, slots=True)
class FailingQueue:
    """A queue with failures of the pair with this number; `queues` have some.

    `capped`: there may be more.
    """

    pair: int
    queue_id: int
    failures: int
    queues: int
    capped: bool


def list_failing_queues(
    using: str, pairs: Sequence[tuple[str, str]], *, since: datetime, listed: int, most: int
) -> list[FailingQueue]:
    """Return queues with failures since `since` of some pairs of task and class.

    They are the `listed` ones of each pair that failed most, in its newest `most` rows.
    """
    params = {
        "tasks": text_array(task for task, _ in pairs),
        "errors": text_array(error for _, error in pairs),
        "since": since,
        "listed": listed,
        "most": most,
    }
    return [FailingQueue(*row) for row in fetch(using, "list_failing_queues", params)]


@dataclass(frozen=True, slots=True)
class FailingTask:
    """A task, how many of its runs failed, and how many ended."""

    task: str
    failures: int
    ended: int


def list_failing_tasks(
    using: str, *, since: datetime, least: int, share: float, most: int
) -> list[FailingTask]:
    """Return tasks with at least `least` failed runs since `since`, which are this `share` of all.

    They are the `most` that failed most.
    """
    params = {"since": since, "least": least, "share": share, "most": most}
    return [FailingTask(*row) for row in fetch(using, "list_failing_tasks", params)]
