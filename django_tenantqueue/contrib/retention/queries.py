"""Statements that shorten the history by the rules of retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ...operations.history import Span
from ...queries.base import array, fetch
from ...queries.lists import plan_without

AVOIDED = ("enable_seqscan", "enable_indexscan", "enable_bitmapscan")


class EndedJob(NamedTuple):
    """What decides how long an ended job is kept, what it still has, and how large that is.

    A tuple, as thousands are read in a second.
    """

    id: int
    finished_at: datetime
    queue_id: int
    name: str
    state: str
    has_arguments: bool
    has_result: bool
    has_errors: bool
    row_bytes: int
    argument_bytes: int
    result_bytes: int
    error_bytes: int


@dataclass(frozen=True, slots=True)
class LeafSize:
    """How large one month is. `about`: its rows, as the last vacuum or analyze has seen them."""

    pages: int
    bytes: int
    about: int


@dataclass(frozen=True, slots=True)
class Removal:
    """Which values are removed from a job."""

    arguments: bool
    results: bool
    errors: bool


def measure_leaf(using: str, leaf: str) -> LeafSize | None:
    """Return the size of a month's table; None when there is none of that name."""
    rows = fetch(using, "measure_leaf", {"leaf": leaf})
    return LeafSize(*rows[0]) if rows else None


def read_ended(
    using: str,
    span: Span,
    pages: tuple[int, int],
    *,
    before: datetime,
    queues: Sequence[int] | None,
    whole: bool,
) -> list[EndedJob]:
    """Return the jobs in these pages of a month that ended before a time.

    `pages`: the first one, and the one after the last. `queues`: of these alone; None: of all.
    `whole`: fill `row_bytes`.
    """
    first, until = pages
    params = {
        "first": f"({first},0)",
        "until": f"({until},0)",
        "start": span.start,
        "end": span.end,
        "before": before,
        "queues": None if queues is None else array(queues),
        "whole": whole,
    }
    # a range of pages is never read by the planner's other ways, which read the whole month
    with plan_without(using, AVOIDED):
        return list(map(EndedJob._make, fetch(using, "read_ended", params)))


def delete_ended(using: str, span: Span, ids: Sequence[int], latest: datetime) -> list[int]:
    """Delete those of `ids` that have ended by `latest`; return them."""
    params = {"ids": array(ids), "start": span.start, "end": span.end, "latest": latest}
    return [row[0] for row in fetch(using, "delete_ended", params)]


def thin_ended(
    using: str, span: Span, removals: Mapping[int, Removal], latest: datetime
) -> list[int]:
    """Remove values of jobs, by their ids, that have ended by `latest`; return the ids."""
    chosen = removals.values()
    params = {
        "ids": array(removals),
        "arguments": array(r.arguments for r in chosen),
        "results": array(r.results for r in chosen),
        "errors": array(r.errors for r in chosen),
        "start": span.start,
        "end": span.end,
        "latest": latest,
    }
    return [row[0] for row in fetch(using, "thin_ended", params)]
