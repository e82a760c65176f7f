"""Totals of the figures, from which counters of metrics are read: filled and read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, zip_longest

from ...histogram import BOUNDS
from ...models.worker import HEARTBEAT_SECONDS
from ...queries.base import fetch
from ...status.display_limits import PAGE, PERIODS

OTHERS = ""
"""Name of all tasks together that have no totals of their own."""
OTHER = "other"
"""Label of these in the metrics."""
UPPER_BOUNDS = (*map(str, BOUNDS), "+Inf")
SETTLED = timedelta(seconds=HEARTBEAT_SECONDS * 120)
"""Age from which no heartbeat adds to a minute of the figures."""
COUNTED_TASKS = PAGE
"""Tasks with counters of their own in the metrics."""
SILENT = timedelta(hours=max(PERIODS))
"""A task that has not run for this time loses its counters. The next run begins new ones at 0."""
NUMBERS = ("started", "succeeded", "failed", "retried", "cancelled", "wait_micros", "run_micros")


@dataclass(frozen=True, slots=True)
class Total:
    """Counts of the jobs of a task. Times are in microseconds."""

    task: str
    started: int
    succeeded: int
    failed: int
    retried: int
    cancelled: int
    wait_micros: int
    run_micros: int
    waits: Sequence[int]
    runs: Sequence[int]

    @property
    def label(self) -> str:
        """Its task in the metrics."""
        if self.task == OTHER:
            return repr(OTHER)  # a task of this name: two series of one name would fail the scrape
        return OTHER if self.task == OTHERS else self.task


def buckets(counts: Sequence[int]) -> list[tuple[str, float]]:
    """Return cumulative counts by upper bound."""
    missing = [0] * (len(UPPER_BOUNDS) - len(counts))
    return list(zip(UPPER_BOUNDS, map(float, accumulate([*counts, *missing])), strict=False))


def add_to_totals(using: str, now: datetime | None) -> tuple[datetime, bool]:
    """Add settled minutes of the figures to the totals.

    Return the first minute that is not added, and whether more are settled. `now`: the database's
    clock if None.
    """
    params = {
        "now": now,
        "settle": SETTLED.total_seconds(),
        "most": COUNTED_TASKS,
        "silent": SILENT.total_seconds(),
    }
    ((upto, more),) = fetch(using, "add_to_totals", params)
    return upto, more


def read_totals(using: str) -> list[Total]:
    """Return the totals of tasks, and of OTHERS as the first; none before the first maintenance."""
    rows = [Total(*row) for row in fetch(using, "read_totals", {})]
    if not rows:
        return []
    everything, *named = rows
    return [_without(everything, named), *named]


def _without(everything: Total, named: Sequence[Total]) -> Total:
    """Return the totals of the other tasks."""
    numbers = {
        name: getattr(everything, name) - sum(getattr(one, name) for one in named)
        for name in NUMBERS
    }
    return Total(
        task=OTHERS,
        waits=_less(everything.waits, [one.waits for one in named]),
        runs=_less(everything.runs, [one.runs for one in named]),
        **numbers,
    )


def _less(counts: Sequence[int], others: Iterable[Sequence[int]]) -> list[int]:
    return [all_ - sum(named) for all_, *named in zip_longest(counts, *others, fillvalue=0)]
