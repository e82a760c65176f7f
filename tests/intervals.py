"""How many intervals overlap, exactly: a sampler cannot see jobs of 20 ms, intervals can.

An interval is half-open, [start, end): one that begins in the instant in which another ends does
not overlap it, and one that ends where it begins overlaps nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Moment = Any
"""Anything with an order: a number, a datetime."""
Interval = tuple[Moment, Moment]


@dataclass(frozen=True, slots=True)
class Breach:
    """A start at which more ran than was allowed, itself included."""

    at: Moment
    count: int
    allowed: int


class Limits:
    """A limit that is changed live: the largest that may have been in force at each moment.

    An edit takes effect somewhere between the moments before and after it; in between, the larger
    of both limits counts.
    """

    def __init__(self, first: int) -> None:
        self._moments: list[Moment] = []
        self._limits = [first]
        self._last = first

    def change(self, limit: int, *, before: Moment, after: Moment) -> None:
        """Note an edit; edits must be noted in their order."""
        if self._moments and before < self._moments[-1]:
            raise ValueError(f"an edit at {before} after one that ended at {self._moments[-1]}")
        self._moments += [before, after]
        self._limits += [max(self._last, limit), limit]
        self._last = limit

    def __call__(self, moment: Moment) -> int:
        """Return what is allowed at a moment. The moment `after` is already under the new limit."""
        return self._limits[bisect_right(self._moments, moment)]


def breaches(intervals: Iterable[Interval], allowed: Callable[[Moment], int] | int) -> list[Breach]:
    """Return the starts at which more intervals were open than allowed at that moment.

    Only starts are judged: a limit that falls below what is running stops no one.
    """
    given: Sequence[Interval] = list(intervals)
    for start, end in given:
        if end < start:
            raise ValueError(f"an interval from {start} to {end} ends before it begins")
    limit = (lambda _moment: allowed) if isinstance(allowed, int) else allowed
    starts = sorted(start for start, end in given if start != end)
    ends = sorted(end for start, end in given if start != end)
    found = []
    ended = 0
    for begun, start in enumerate(starts, 1):
        while ends[ended] <= start:
            ended += 1
        if begun - ended > limit(start):
            found.append(Breach(start, begun - ended, limit(start)))
    return found


def most_at_once(intervals: Iterable[Interval]) -> int:
    """Return the largest number of intervals that were open at one moment."""
    return max((breach.count for breach in breaches(intervals, 0)), default=0)


def breaches_of_rate(
    starts: Iterable[datetime], per_second: float, burst: int
) -> list[tuple[datetime, float, int]]:
    """Return every span of time with more starts than a rate allows: (begin, seconds, starts).

    Every pair of starts is looked at. A span of so many seconds may have `burst` starts and those
    that the rate brings in it.
    """
    ordered = sorted(starts)
    return [
        (first, seconds, last - number + 1)
        for number, first in enumerate(ordered)
        for last in range(number, len(ordered))
        if last - number + 1
        > burst + per_second * (seconds := (ordered[last] - first).total_seconds()) + 0.001
    ]
