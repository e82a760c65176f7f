"""All details of a monitor, in steps whose cost does not grow with what was read before."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime

from ..models import ConcurrentJobMonitor
from ..queries import monitors as queries
from ..queries.lists import NEWEST
from ..states import State

ENDED = {"failed": State.ERROR, "cancelled": State.CANCELLED, "done": State.SUCCESS}
"""The states of details that have ended, by the counts of Progress."""


def walk_details(
    using: str, monitor: ConcurrentJobMonitor, part: str | None, *, size: int
) -> Iterator[tuple[int, ...]]:
    """Yield the ids of the details that `part`, a count of Progress, counts; None is all.

    At most 3 * `size` at a time: unfinished ones in their order, then those that ended, the last
    first. A detail that ends meanwhile is yielded once.
    """
    seen = array("q")  # ascending; 8 bytes for each unfinished detail
    if part not in ENDED:
        for ids in _unfinished(using, monitor, part, size):
            seen.extend(ids)
            yield ids
    for name, state in ENDED.items():
        if part in (None, name):
            for ended in _ended(using, monitor.pk, state, size):
                yield tuple(i for i in ended if i != monitor.anchor_id and not _has(seen, i))


def _unfinished(
    using: str, monitor: ConcurrentJobMonitor, part: str | None, size: int
) -> Iterator[tuple[int, ...]]:
    after = 0
    while True:
        found = queries.list_unfinished_details(using, monitor.pk, most=size, after=after)
        # each part was read to its own depth: one that has more ends the page for all
        depth: dict[str, list[int]] = {}
        for detail in found:
            group = detail.part if detail.part in ("in_line", "aside") else "inside"
            depth.setdefault(group, []).append(detail.id)
        limits = [max(ids) for ids in depth.values() if len(ids) == size]
        limit = min(limits, default=NEWEST)
        yield tuple(
            sorted(
                detail.id
                for detail in found
                if detail.id <= limit and detail.part != "anchor" and part in (None, detail.part)
            )
        )
        if not limits:
            return
        after = limit


def _ended(using: str, monitor_id: int, state: State, size: int) -> Iterator[tuple[int, ...]]:
    before: tuple[datetime | None, int] = (None, NEWEST)
    while True:
        found = queries.list_ended_details(using, monitor_id, state, before=before, most=size)
        yield tuple(job_id for job_id, _ in found)
        if len(found) < size:
            return
        before = (found[-1][1], found[-1][0])


def _has(ids: Sequence[int], wanted: int) -> bool:
    place = bisect_left(ids, wanted)
    return place < len(ids) and ids[place] == wanted
