"""The queue that a routing chooses for a new job.

Each process that enqueues reads the routings at most once a second, so an edit takes effect within
a second. Between two reads, a look-up is one step in a dict.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import NamedTuple

from django.db import connections

from ...batch_sizes import REMEMBERED, REMEMBERED_SECONDS
from ...queries.base import fetch
from ...queries.enqueue import in_test_case
from ...text import matches


class Route(NamedTuple):
    """The queue of new jobs of a tenant (None: of every tenant) whose name matches."""

    tenant: str | None
    pattern: str
    queue: str


def rank_of(route: Route) -> tuple[bool, bool, int, str]:
    """Return how specific a routing is: the highest matching one decides."""
    return route.tenant is not None, "*" not in route.pattern, len(route.pattern), route.pattern


class Routes:
    """All routings at one moment."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = sorted(routes, key=rank_of, reverse=True)
        self._queues: dict[tuple[str, str], str | None] = {}

    def __bool__(self) -> bool:
        return bool(self._routes)

    def queue_of(self, tenant: str, name: str) -> str | None:
        """Return the queue of the most specific routing; None: no routing matches."""
        key = (tenant, name)
        try:
            return self._queues[key]
        except KeyError:
            pass
        found = self.find(tenant, name)
        queue = None if found is None else found.queue
        if len(self._queues) < REMEMBERED:
            self._queues[key] = queue
        return queue

    def find(self, tenant: str, name: str) -> Route | None:
        matching = (
            route
            for route in self._routes
            if route.tenant in (None, tenant) and matches(name, route.pattern)
        )
        return next(matching, None)


_known: dict[str, tuple[float, Routes]] = {}
"""alias -> until when its routings are used, and the routings."""


def _read(using: str) -> Routes:
    # not by the ORM: assertNumQueries would count a read that comes once a second
    return Routes(Route(*row) for row in fetch(using, "list_routings", {}))


def routes_of(using: str) -> Routes:
    """Return the routings of a database, at most REMEMBERED_SECONDS old.

    In a Django TestCase they are read each time, since its rows are never committed.
    """
    if in_test_case(connections[using]):
        return _read(using)
    known = _known.get(using)
    if known is not None and monotonic() < known[0]:
        return known[1]
    found = _read(using)
    _known[using] = (monotonic() + REMEMBERED_SECONDS, found)
    return found


def forget_routes() -> None:
    """Read the routings again at the next enqueue of this process."""
    _known.clear()
