"""Which figures go to the counters of the metrics, and when."""

from __future__ import annotations

from datetime import datetime, timedelta

from ...models.worker import HEARTBEAT_SECONDS
from ...status.amounts import PAGE, PERIODS
from . import queries as totals

SETTLED = timedelta(seconds=HEARTBEAT_SECONDS * 120)
"""Age of a minute of the figures to which no worker's heartbeat adds any more."""
COUNTED_TASKS = PAGE
"""Tasks with counters of their own in the metrics."""
SILENT = timedelta(hours=max(PERIODS))
"""A task that has not run for this time, the longest range of a page, loses its counters; the next
run begins new ones at 0."""


def add_to_totals(using: str, now: datetime | None) -> tuple[datetime, bool]:
    """Add settled minutes of the figures to the totals, which the counters are read from.

    Return up to which minute they are added, and whether there are more. `now` is the database's
    clock if None.
    """
    return totals.add_to_totals(
        using,
        now=now,
        settle=SETTLED.total_seconds(),
        most=COUNTED_TASKS,
        silent=SILENT.total_seconds(),
    )
