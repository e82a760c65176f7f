"""What happens in a simulated day: sizes, tenants, and the load at each hour."""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

FIRST_HOUR, LAST_HOUR = 4.0, 24.0
PEAKS = ((10.5, 2.2, 1.0), (15.5, 2.6, 0.95))
"""Hour, width and height of the two peaks of a working day."""
NIGHT = 0.04
"""Load outside of them, as a part of the peak."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of a run. Times are seconds of the run; hours are those of the simulated day."""

    tenants: int = 100_000
    blocked: float = 0.03
    """Part of the tenants that are paused or have no free slot."""
    backlogged: int = 500
    """Those of them that have waiting jobs all day."""
    backlog: int = 2
    """Jobs of each of these."""
    large: int = 1000
    """Tenants that are not small."""
    day_seconds: float = 360.0
    """The day lasts from FIRST_HOUR to LAST_HOUR."""
    limited_seconds: float = 45.0
    """The phase after it in which all waiting jobs are blocked by a limit."""
    limited_jobs: int = 20
    """Jobs that wait there behind each long one, for the only slot of their tenant."""
    peak_rate: float = 11.5
    """Jobs enqueued each second at the peak."""
    mean_seconds: float = 13.0
    """Mean duration of a job; most take less."""
    longest_seconds: float = 40.0
    burst: int = 360
    """Jobs that a tenant without a limit enqueues at once, at BURST_HOUR."""
    limited_burst: int = 150
    """Jobs that a tenant with few slots enqueues at once, at LIMITED_BURST_HOUR."""
    burst_seconds: float = 3.0
    """Duration of the jobs of both."""
    least_pods: int = 5
    most_pods: int = 60
    pod_workers: int = 3
    async_slots: int = 0
    """Coroutine slots of each worker beside its thread. No job here is a coroutine."""
    start_seconds: float = 2.0
    """Time from the order for a pod until its workers claim."""
    surge: float = 0.25
    """Part of the pods that a deploy replaces at a time."""
    ask_seconds: float = 2.5
    """How often the autoscaler asks, and the series gets a point."""
    shrink_seconds: float = 30.0
    """The fleet shrinks to the largest number that was wanted in this time."""
    kills: int = 40
    """Workers that die during the day, one at a time. In addition, one whole pod dies."""
    desks: int = 6
    """Processes that share the workers. Each has one connection for claims and one for leases."""
    seed: int = 7

    BURST_HOUR = 20.0
    LIMITED_BURST_HOUR = 12.5
    DEPLOY_HOURS = (9.5, 14.5)
    POD_DEATH_HOUR = 17.0

    def hour(self, second: float) -> float:
        """Return the simulated hour at a second of the run."""
        return FIRST_HOUR + second / self.day_seconds * (LAST_HOUR - FIRST_HOUR)

    def second(self, hour: float) -> float:
        """Return the second of the run at a simulated hour."""
        return (hour - FIRST_HOUR) / (LAST_HOUR - FIRST_HOUR) * self.day_seconds

    @property
    def scale(self) -> float:
        """How much faster than a clock the simulated hours pass."""
        return (LAST_HOUR - FIRST_HOUR) * 3600 / self.day_seconds

    def rate(self, second: float) -> float:
        """Return the jobs to enqueue each second; 0 after the day."""
        if second >= self.day_seconds:
            return 0.0
        hour = self.hour(second)
        peaks = (top * math.exp(-(((hour - at) / width) ** 2)) for at, width, top in PEAKS)
        return self.peak_rate * min(1.0, NIGHT + sum(peaks))

    def duration(self, chance: random.Random) -> float:
        """Return the duration of a job: most are short, and some are long."""
        drawn = chance.lognormvariate(math.log(self.mean_seconds) - 0.32, 0.8)
        return round(min(self.longest_seconds, max(0.05, drawn)), 2)

    def slots(self, rank: int) -> int:
        """Return the slots of the tenant with this rank, from 1."""
        return 50 if rank <= 10 else 10 if rank <= self.large else 3


SIZES = {
    "full": Plan(),
    "small": Plan(
        tenants=5_000,
        backlogged=75,
        day_seconds=100.0,
        limited_seconds=20.0,
        peak_rate=30.0,
        mean_seconds=3.0,
        longest_seconds=9.0,
        burst=300,
        limited_burst=100,
        burst_seconds=1.5,
        most_pods=30,
        pod_workers=4,
        shrink_seconds=8.0,
        kills=12,
        desks=2,
    ),
    "tiny": Plan(
        tenants=300,
        backlogged=4,
        large=30,
        day_seconds=12.0,
        limited_seconds=4.0,
        limited_jobs=5,
        peak_rate=15.0,
        mean_seconds=0.4,
        longest_seconds=1.5,
        burst=60,
        limited_burst=20,
        burst_seconds=0.4,
        least_pods=2,
        most_pods=8,
        pod_workers=2,
        start_seconds=0.3,
        ask_seconds=0.5,
        shrink_seconds=1.5,
        kills=2,
        desks=2,
    ),
}


class Zipf:
    """Draws ranks from 1 on; the rank k comes 1/k as often as the first."""

    def __init__(self, count: int) -> None:
        self._sums: Sequence[float] = list(accumulate(1 / k for k in range(1, count + 1)))

    def draw(self, chance: random.Random) -> int:
        """Return a rank."""
        return 1 + bisect(self._sums, chance.random() * self._sums[-1])


def poisson(mean: float, chance: random.Random) -> int:
    """Return how many of the events with this mean number happen."""
    count, left = 0, chance.expovariate(1.0)
    while left < mean:
        count += 1
        left += chance.expovariate(1.0)
    return count
