"""Statements about minute figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .base import Where, array, execute_bounded, fetch, text_array

ALL = 0
"""In place of a queue's id: the jobs of all queues."""


@dataclass(slots=True)
class Counts:
    """What happened to some jobs.

    `waits` and `runs` are durations counted by their places (see `spread`).
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

    def add(self, other: Counts) -> None:
        """Add the counts of other jobs."""
        for name in NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, theirs in ((self.waits, other.waits), (self.runs, other.runs)):
            mine.extend([0] * (len(theirs) - len(mine)))
            for at, count in enumerate(theirs):
                mine[at] += count


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


def add_figures(where: Where, counts: dict[Key, Counts]) -> None:
    """Add counts to the figures of this minute."""
    keys, rows = list(counts), list(counts.values())
    params = {
        "queue_ids": array(key[0] for key in keys),
        "names": text_array(key[1] for key in keys),
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
    name: str
    counts: Counts


def list_figures(using: str, *, since: datetime, seconds: float) -> list[Period]:
    """Return the counts of all jobs since `since`, in periods of `seconds`."""
    return _periods(using, "list_figures", {"since": since, "seconds": seconds})


def list_task_figures(using: str, *, since: datetime, seconds: float, most: int) -> list[Period]:
    """Return the counts of the `most` tasks that ran longest since `since`, by period."""
    params = {"since": since, "seconds": seconds, "most": most}
    return _periods(using, "list_task_figures", params)


def _periods(using: str, name: str, params: Mapping[str, Any]) -> list[Period]:
    rows = fetch(using, name, params)
    return [Period(row[0], row[1], Counts(*row[2:])) for row in rows]


def sum_of_queues(using: str, queue_ids: Sequence[int], *, since: datetime) -> dict[int, Counts]:
    """Return the counts of queues since `since`; those without figures are left out."""
    params = {"queue_ids": array(queue_ids), "since": since}
    return {row[0]: Counts(*row[1:]) for row in fetch(using, "sum_of_queues", params)}


@dataclass(frozen=True, slots=True)
class FailingQueue:
    """Failed runs of one queue. `capped`: more figures may exist than were read."""

    queue_id: int
    failed: int
    retried: int
    capped: bool


def list_failing_queues(using: str, *, since: datetime, rows: int) -> list[FailingQueue]:
    """Return what failed since `since` by queue; at most the newest `rows` figures are read."""
    found = fetch(using, "list_failing_queues", {"since": since, "rows": rows})
    return [FailingQueue(*row) for row in found]


@dataclass(frozen=True, slots=True)
class Failures:
    """Runs of one task that ended with errors of one class."""

    name: str
    error: str
    failed: int
    retried: int
    first_at: datetime
    last_at: datetime
    last_job_id: int
    queues: int


def list_failures(using: str, *, since: datetime, most: int) -> list[Failures]:
    """Return the failures since `since` by task and class, the most frequent first."""
    rows = fetch(using, "list_failures", {"since": since, "most": most})
    return [Failures(*row) for row in rows]
