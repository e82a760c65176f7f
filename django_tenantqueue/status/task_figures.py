"""What happened to the jobs of one task: sums of each range, and points over time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils import timezone

from ..queries.figures import ALL, Counts, list_figures_of_task
from .display_limits import PERIODS, starts_of_periods
from .failures import figure_name


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """Counts of a task. `sums` are by the hours of the range, `points` by the periods of one."""

    sums: Mapping[int, Counts]
    points: Sequence[Counts]
    period_seconds: float

    @property
    def started_per_second(self) -> float:
        """Starts per second in the last whole period."""
        return self.points[-2].started / self.period_seconds


def read_task_figures(
    using: str, task: str, hours: int, queues: Sequence[int] | None = None
) -> TaskFigures:
    """Read the figures of a task in some queues (None: all) by one statement.

    `hours`: the range of the points, a key of PERIODS.
    """
    now = timezone.now()
    begins = {length: starts_of_periods(length, now)[0] for length in PERIODS}
    starts = starts_of_periods(hours, now)
    sums = {length: Counts() for length in PERIODS}
    points = [Counts() for _ in starts]
    rows = list_figures_of_task(
        using,
        figure_name(task),
        since=min(begins.values()),
        queue_ids=(ALL,) if queues is None else queues,
    )
    for row in rows:
        for length, begin in begins.items():
            if row.at >= begin:
                sums[length].add(row.counts)
        if row.at >= starts[0]:
            points[bisect_right(starts, row.at) - 1].add(row.counts)
    return TaskFigures(sums, points, PERIODS[hours])
