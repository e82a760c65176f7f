"""Arithmetic of the benchmarks: percentiles, overlaps, spreads, ratios. Nothing here does I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate
from typing import TypeVar

Interval = tuple[float, float]
"""[start, end): one that begins in the instant in which another ends does not overlap it."""
Sample = TypeVar("Sample")


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the values do not exceed.

    This is the nearest-rank definition: the answer is always one of the values.
    """
    if not 0 < percent <= 100:
        raise ValueError(f"percent={percent!r} must be above 0 and at most 100")
    ordered = sorted(values)
    if not ordered:
        raise ValueError("there is no percentile of nothing")
    return ordered[max(0, math.ceil(percent / 100 * len(ordered) - 1e-9) - 1)]


def most_at_once(intervals: Iterable[Interval]) -> int:
    """Return the largest number of intervals that were open at one moment."""
    changes: list[tuple[float, int]] = []
    for start, end in intervals:
        if end < start:
            raise ValueError(f"an interval ends at {end!r}, before its start at {start!r}")
        changes += [(start, 1), (end, -1)]
    changes.sort()  # at the same moment, ends come first
    return max(accumulate(step for _, step in changes), default=0)


def most_by_key(rows: Iterable[tuple[Hashable, float, float]]) -> dict[Hashable, int]:
    """Return for each key of rows (key, start, end) the most that were open at one moment."""
    grouped: dict[Hashable, list[Interval]] = {}
    for key, start, end in rows:
        grouped.setdefault(key, []).append((start, end))
    return {key: most_at_once(intervals) for key, intervals in grouped.items()}


def median_sample(samples: Sequence[Sample], value: Callable[[Sample], float]) -> Sample:
    """Return the sample whose value is the median; of two in the middle, the lower one."""
    if not samples:
        raise ValueError("there is no median of nothing")
    return sorted(samples, key=value)[(len(samples) - 1) // 2]


def worst(values: Iterable[float], *, higher_is_better: bool) -> float:
    """Return the worst of the values."""
    return min(values) if higher_is_better else max(values)


def ratio(value: float, reference: float) -> float:
    """Return value / reference. Raises ValueError when there is nothing to divide by."""
    if reference <= 0:
        raise ValueError(f"reference={reference!r} must be above 0")
    return value / reference


def ratios(values: Sequence[float], references: Sequence[float]) -> list[float]:
    """Return value / reference for what was measured in the same round."""
    return [ratio(v, r) for v, r in zip(values, references, strict=True)]
