"""The jobs on a page of a list, at a cost that does not grow with history or backlog.

A page is put together from a few parts: jobs of some states, read from an index that the filters
fit, the newest first. Where filters have no index in common, one is read and the others are applied
to its newest WINDOW entries; the page says so, and its link to older jobs continues there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..models import TenantQueue
from ..queries import lists as queries
from ..queries.lists import Found, JobFilter, Statement
from ..states import ACTIVE, FINAL, UNFINISHED, State
from .display_limits import PAGE, READ

WINDOW = READ // 5
"""Entries of an index that one page reads when a filter is not in that index."""

CHEAP = 4
"""How many times more is read where rows are neighbours and only plain columns are compared."""

READY_WINDOW = WINDOW // 8
"""The same for ready jobs of one queue, for each of its priorities."""

SMALL_WINDOW = READ
"""The same for jobs that hold a slot and for scheduled ones: normally all of them."""

QUEUES_APART = PAGE
"""Most queues that are each read from their own part of an index."""

QUEUES_MOST = READ
"""Most queues that a filter may name."""

SMALL = ACTIVE | {State.SCHEDULED}
"""States of unfinished jobs that have small indexes of their own."""
FAILED = frozenset({State.ERROR, State.CANCELLED})
"""States of finished jobs that have an index of their own."""

Part = tuple[JobFilter, Mapping[Statement, int]]
"""Some of the requested jobs, and the statements that find them: one of several is enough. Each
comes with how much it reads."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """Ids of one page, the newest first.

    `older` is the `before` of the next page, None at the end. `looked_to` is the id down to which
    jobs were read, when the page has room left and there are older ones. `capped`: some jobs may be
    missing, since more are scheduled or hold a slot than one page reads.
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
    with queries.read_in_order(using):
        parts = [
            _deepest(using, part, statements, size + 1)
            for part, statements in _parts(asked, size + 1, by_id=by_id)
        ]
    floor = max((part.floor for part in parts), default=0)
    ids = sorted({i for part in parts for i in part.ids if i >= floor}, reverse=True)
    capped = any(part.capped for part in parts)
    if len(ids) > size:
        return JobPage(tuple(ids[:size]), ids[size - 1], capped=capped)
    return JobPage(tuple(ids), floor or None, looked_to=floor or None, capped=capped)


def _deepest(using: str, asked: JobFilter, statements: Mapping[Statement, int], page: int) -> Found:
    """Return what one of several equivalent statements found: a full page, or the lowest floor."""
    best: Found | None = None
    for name, most in statements.items():
        found = queries.list_jobs(using, name, asked, page=page, most=most)
        if found.capped and len(statements) > 1:
            continue  # jobs of a frequent key: the others find some of them in order
        if best is None or found.floor < best.floor:
            best = found
        if len(found.ids) == page or not found.floor:
            return found
    assert best is not None
    return best


def _parts(asked: JobFilter, page: int, *, by_id: bool) -> Iterator[Part]:
    if asked.source is not None or asked.created_by is not None:
        both = asked.source is not None and asked.created_by is not None
        given = (asked.states, asked.queues, asked.task, both or None)
        is_whole = not asked.is_checked and all(part is None for part in given)
        yield asked, {"list_jobs_of_owner": page if is_whole else WINDOW}
        return
    # The unfinished first: a job that ends between the two is found in the history, too.
    states = frozenset(State) if asked.states is None else asked.states
    if unfinished := states & UNFINISHED:
        yield from _unfinished(asked, unfinished, page, by_id=by_id)
    if finished := states & FINAL:
        yield replace(asked, states=finished), _finished(asked, finished, page)


def _unfinished(
    asked: JobFilter, chosen: frozenset[State], page: int, *, by_id: bool
) -> Iterator[Part]:
    is_whole = asked.task is None and not asked.is_checked
    unfinished = replace(asked, states=chosen)
    if unfinished.key is not None:
        yield unfinished, {"list_jobs_by_id": _window(asked), "list_jobs_of_key": WINDOW}
        return
    if by_id or not (chosen <= SMALL or _are_few(asked.queues)):
        is_all = is_whole and asked.queues is None and chosen == UNFINISHED
        yield replace(asked, states=chosen), {"list_jobs_by_id": page if is_all else _window(asked)}
        return
    ready = page if is_whole else _share(READY_WINDOW, asked.queues, page)
    statements: tuple[tuple[Statement, int, frozenset[State]], ...] = (
        ("list_jobs_of_queues", ready, frozenset({State.READY})),
        ("list_jobs_by_state", SMALL_WINDOW, SMALL),
        ("list_jobs_by_id", _window(asked), frozenset({State.HELD})),
    )
    for name, most, states in statements:
        if own := chosen & states:
            yield replace(asked, states=own), {name: most}


def _finished(asked: JobFilter, chosen: frozenset[State], page: int) -> dict[Statement, int]:
    given = (asked.queues, asked.task, chosen if chosen < FINAL else None)
    filters = sum(part is not None for part in given) + asked.is_checked
    most = page if filters <= 1 and not asked.is_checked else WINDOW
    statements: dict[Statement, int] = {}
    if asked.task is not None:
        statements["list_history_of_task"] = most
    if _are_few(asked.queues):
        statements["list_jobs_of_queues"] = _share(most, asked.queues, page)
    if chosen <= FAILED:
        statements["list_jobs_by_state"] = most
    statements = statements or {"list_jobs_by_id": _window(asked) if filters else page}
    if replace(asked, states=chosen).key is not None:
        statements["list_jobs_of_key"] = WINDOW
    return statements


def _window(asked: JobFilter) -> int:
    """Return how many jobs are read in the order of their ids, where their rows are neighbours."""
    is_cheap = asked.is_checked and asked.text is None and asked.error is None
    return WINDOW * CHEAP if is_cheap else WINDOW


def _are_few(queues: Sequence[int] | None) -> bool:
    return queues is not None and len(queues) <= QUEUES_APART


def _share(window: int, queues: Sequence[int] | None, page: int) -> int:
    """Return how much of each queue is read when another filter is applied to it."""
    return max(page, window // max(len(queues or ()), 1))
