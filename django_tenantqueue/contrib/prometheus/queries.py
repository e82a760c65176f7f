"""Statements about the totals of the figures, from which counters of metrics are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ...queries.base import fetch

OTHERS = ""
"""In place of a task's name: all tasks that have no totals of their own."""


@dataclass(frozen=True, slots=True)
class Total:
    """What has happened to the jobs of a task. Times are microseconds."""

    name: str
    started: int
    succeeded: int
    failed: int
    retried: int
    cancelled: int
    wait_micros: int
    run_micros: int
    waits: Sequence[int]
    runs: Sequence[int]


NUMBERS = ("started", "succeeded", "failed", "retried", "cancelled", "wait_micros", "run_micros")


def add_to_totals(
    using: str, *, now: datetime | None, settle: float, most: int, silent: float
) -> tuple[datetime, bool]:
    """Add the minute figures older than `settle` seconds to the totals.

    Return up to which minute they are added, and whether there are more. At most `most` tasks have
    totals of their own; one that does not run for `silent` seconds loses them.
    """
    params = {"now": now, "settle": settle, "most": most, "silent": silent}
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
    numbers = {
        name: getattr(everything, name) - sum(getattr(one, name) for one in named)
        for name in NUMBERS
    }
    return Total(
        name=OTHERS,
        waits=_less(everything.waits, [one.waits for one in named]),
        runs=_less(everything.runs, [one.runs for one in named]),
        **numbers,
    )


def _less(counts: Sequence[int], others: Sequence[Sequence[int]]) -> list[int]:
    left = list(counts)
    for other in others:
        left.extend([0] * (len(other) - len(left)))
        for at, count in enumerate(other):
            left[at] -= count
    return left
