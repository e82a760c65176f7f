"""Which jobs a page of a list shows, at a cost that does not grow with history or backlog.

A page is made of a few streams of ids, each read from an index that its filters fit, the newest
first. Where filters have no index in common, a stream is read from one index and the others are
applied to its newest WINDOW entries; the page says so, and its link to older jobs goes on there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..models import TenantQueue
from ..queries import lists as queries
from ..queries.lists import Found, JobFilter, Statement
from ..states import ACTIVE, FINAL, State
from .amounts import PAGE, READ

WINDOW = READ // 5
"""Entries of an index that one page looks at when a filter is not in that index."""

READY_WINDOW = WINDOW // 8
"""The same for ready jobs of one queue, for each of its priorities."""

SMALL_WINDOW = READ
"""The same for jobs that hold a slot and for scheduled ones: normally all of them."""

QUEUES_APART = PAGE
"""Most queues that are each read from their own part of an index."""

QUEUES_MOST = READ
"""Most queues that a filter may name."""

UNFINISHED = tuple(state for state in State if state not in FINAL)
FINISHED = tuple(state for state in State if state in FINAL)


@dataclass(frozen=True, slots=True)
class JobPage:
    """Ids of one page, the newest first.

    `older` is the `before` of the next page, None at the end. `looked_to` is the id down to which
    jobs were looked at, when the page has room left and there are older ones. `capped`: some jobs
    may be missing, since more are scheduled or hold a slot than one page looks at.
    """

    ids: tuple[int, ...]
    older: int | None
    looked_to: int | None = None
    capped: bool = False


def queue_ids(
    using: str,
    *,
    tenant: str | None = None,
    name: str | None = None,
    tenants: Collection[str] | None = None,
) -> tuple[int, ...]:
    """Return the ids of the queues of a tenant, of a name, of some tenants, or of all these.

    At most QUEUES_MOST are returned.
    """
    queues = TenantQueue.objects.using(using).order_by()
    if tenants is not None:
        queues = queues.filter(tenant__in=sorted(tenants))
    if tenant is not None:
        queues = queues.filter(tenant=tenant)
    if name is not None:
        queues = queues.filter(name=name)
    return tuple(queues.values_list("pk", flat=True)[:QUEUES_MOST])


def find_jobs(using: str, asked: JobFilter, *, size: int, by_id: bool = False) -> JobPage:
    """Return a page of at most `size` jobs.

    `by_id` reads unfinished jobs in the order of their ids alone: never capped, but slow where few
    of many are wanted.
    """
    if asked.queues is not None and not asked.queues:
        return JobPage((), None)
    if asked.source is not None:
        found = queries.list_jobs(using, "list_jobs_of_source", asked, page=size + 1, most=WINDOW)
        return _page([found], size)
    with queries.read_in_order(using):
        # The unfinished first: a job that ends between the two is found in the history, too.
        unfinished = _unfinished(using, asked, size + 1, by_id=by_id)
        parts = [*unfinished, *_finished(using, asked, size + 1)]
    return _page(parts, size)


def _page(parts: Sequence[Found], size: int) -> JobPage:
    floor = max((part.floor for part in parts), default=0)
    ids = sorted({i for part in parts for i in part.ids if i >= floor}, reverse=True)
    capped = any(part.capped for part in parts)
    if len(ids) > size:
        return JobPage(tuple(ids[:size]), ids[size - 1], capped=capped)
    if floor:
        return JobPage(tuple(ids), floor, looked_to=floor, capped=capped)
    return JobPage(tuple(ids), None, capped=capped)


def walk_pages(using: str, asked: JobFilter, *, size: int) -> Iterator[JobPage]:
    """Yield all pages of a list, the newest first. One may be empty where its window has no match.

    Each step ends its transaction before its page is yielded. Where the list may leave jobs out
    (`capped`), the walk goes on by their ids.
    """
    by_id = False
    while True:
        page = find_jobs(using, asked, size=size, by_id=by_id)
        if page.capped and not by_id:
            by_id = True
            continue
        yield page
        if page.older is None:
            return
        asked = replace(asked, before=page.older)


def _chosen(states: frozenset[State] | None, among: Iterable[State]) -> frozenset[State]:
    return frozenset(among) if states is None else states.intersection(among)


def _unfinished(using: str, asked: JobFilter, page: int, *, by_id: bool) -> list[Found]:
    chosen = _chosen(asked.states, UNFINISHED)
    if not chosen:
        return []
    is_one_part = chosen <= ACTIVE or chosen == {State.SCHEDULED}
    if by_id or not (is_one_part or _are_few(asked.queues)):
        is_all = len(chosen) == len(UNFINISHED) and not (asked.queues or asked.name or asked.text)
        asked = replace(asked, states=None if is_all else chosen)
        most = page if is_all else WINDOW
        return [queries.list_jobs(using, "list_unfinished_jobs", asked, page=page, most=most)]
    is_whole = asked.name is None and asked.text is None
    ready = page if is_whole else _share(READY_WINDOW, asked.queues, page)
    streams: tuple[tuple[Statement, int, Collection[State]], ...] = (
        ("list_ready_of_queues", ready, {State.CREATED}),
        ("list_active_jobs", SMALL_WINDOW, ACTIVE),
        ("list_scheduled_jobs", SMALL_WINDOW, {State.SCHEDULED}),
        ("list_unfinished_jobs", WINDOW, {State.HELD}),
    )
    return [
        queries.list_jobs(using, name, replace(asked, states=own), page=page, most=most)
        for name, most, among in streams
        if (own := chosen.intersection(among))
    ]


def _finished(using: str, asked: JobFilter, page: int) -> list[Found]:
    chosen = _chosen(asked.states, FINISHED)
    if not chosen:
        return []
    if chosen == {State.ERROR, State.CANCELLED}:  # each has its part of an index
        apart = (replace(asked, states=frozenset({state})) for state in chosen)
        return [found for one in apart for found in _finished(using, one, page)]
    asked = replace(asked, states=None if len(chosen) == len(FINISHED) else chosen)
    given = (asked.states, asked.queues, asked.name, asked.text)
    filters = sum(part is not None for part in given)
    fitting = WINDOW if filters > 1 else page
    streams: list[tuple[Statement, int]] = []
    if asked.name is not None:
        streams.append(("list_history_of_name", fitting))
    if _are_few(asked.queues):
        most = page if filters == 1 else _share(WINDOW, asked.queues, page)
        streams.append(("list_history_of_queues", most))
    if chosen <= {State.ERROR, State.CANCELLED}:
        streams.append(("list_history_in_state", fitting))
    if not streams:
        streams.append(("list_history_jobs", WINDOW if filters else page))
    return [_deepest(using, asked, streams, page)]


def _deepest(
    using: str, asked: JobFilter, streams: Iterable[tuple[Statement, int]], page: int
) -> Found:
    """Return what one of several equivalent streams found: a full page, or the lowest floor."""
    best: Found | None = None
    for name, most in streams:
        found = queries.list_jobs(using, name, asked, page=page, most=most)
        if best is None or found.floor < best.floor:
            best = found
        if len(found.ids) == page or not found.floor:
            return found
    assert best is not None
    return best


def _are_few(queues: Sequence[int] | None) -> bool:
    return queues is not None and len(queues) <= QUEUES_APART


def _share(window: int, queues: Sequence[int] | None, page: int) -> int:
    """Return how much of each queue is looked at when another filter is applied to it."""
    return max(page, window // max(len(queues or ()), 1))
