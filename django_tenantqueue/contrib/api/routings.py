"""Routings of a tenant."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Path, Router

from ..routing import services
from ..routing.models import Routing
from . import schemas
from .access import READ, TUNE, Needs, caller_of, check_queue
from .exceptions import ApiError
from .jobs import answer
from .openapi import operation

router = Router(tags=["routings"])
Pattern = Annotated[str, Path(min_length=1, max_length=500)]


def _shown(row: Routing) -> dict[str, Any]:
    return {"pattern": row.pattern, "queue": row.queue}


@operation(router.get, "/routings", Needs(READ), {200: schemas.RoutingList})
def list_routings(request: HttpRequest) -> HttpResponse:
    """List the tenant's own routings. Routings for every tenant are left out."""
    rows = services.list_routings(caller_of(request).tenant)
    return answer({"items": [_shown(row) for row in rows], "next": None})


@operation(
    router.put,
    "/routings/{path:pattern}",
    Needs(TUNE),
    {200: schemas.RoutingDetails},
    problems=(409,),
)
def set_routing(
    request: HttpRequest, pattern: Pattern, changes: schemas.RoutingChanges
) -> HttpResponse:
    """Route new jobs of the tasks that match a pattern to a queue.

    `*` stands for any text.
    """
    caller = caller_of(request)
    check_queue(caller.token, changes.queue)
    with caller.acting():
        row = services.make_routing(pattern, changes.queue, tenant=caller.tenant)
    return answer(_shown(row))


@operation(router.delete, "/routings/{path:pattern}", Needs(TUNE), {200: schemas.RoutingDetails})
def delete_routing(request: HttpRequest, pattern: Pattern) -> HttpResponse:
    """Delete a routing.

    Answers with the deleted one.
    """
    caller = caller_of(request)
    rows = services.list_routings(caller.tenant)
    found = next((row for row in rows if row.pattern == pattern), None)
    with caller.acting():
        if found is None or not services.delete_routings([found.pk]):
            raise ApiError(404, f"There is no routing {pattern!r}.")
    return answer(_shown(found))
