"""Totals of the figures, from which counters of metrics are read: filled and read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest

from ...models.worker import HEARTBEAT_SECONDS
from ...queries.base import fetch
from ...status.display_limits import PAGE, PERIODS

OTHERS = ""
"""In place of a task's name: all tasks that have no totals of their own."""
SETTLED = timedelta(seconds=HEARTBEAT_SECONDS * 120)
"""Age of a minute of the figures to which no worker's heartbeat adds any more."""
COUNTED_TASKS = PAGE
"""Tasks with counters of their own in the metrics."""
SILENT = timedelta(hours=max(PERIODS))
"""A task that has not run for this time, the longest range of a page, loses its counters; the next
run begins new ones at 0."""
NUMBERS = ("started", "succeeded", "failed", "retried", "cancelled", "wait_micros", "run_micros")


@dataclass(frozen=True, slots=True)
class Total:
    """What has happened to the jobs of a task. Times are microseconds."""

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


def add_to_totals(using: str, now: datetime | None) -> tuple[datetime, bool]:
    """Add settled minutes of the figures to the totals.

    Return up to which minute they are added, and whether there are more. `now` is the database's
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
    """Return what is left for the tasks that have no totals of their own."""
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
