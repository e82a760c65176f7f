"""Durations counted by length, and the percentiles that such counts give."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

BOUNDS = tuple(0.001 * 2.0**n for n in range(30))
"""Upper bounds in seconds: 1 ms, 2 ms, 4 ms … about 6 days. Longer ones count in one more place.
A percentile is exact to within a factor of two. More bounds make each row of figures longer."""


def place(seconds: float) -> int:
    """Return where a duration is counted."""
    return bisect_left(BOUNDS, seconds)


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the seconds below which this share (0 to 1) of the durations lie; None without any.

    Inside the place of the answer, durations are taken to be spread evenly.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    seen = 0
    for at, count in enumerate(counts):
        if count and seen + count >= wanted:
            low = BOUNDS[at - 1] if at else 0.0
            high = BOUNDS[at] if at < len(BOUNDS) else low
            return low + (high - low) * (wanted - seen) / count
        seen += count
    return BOUNDS[-1]
