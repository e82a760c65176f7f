"""Routings: the queue of jobs of a category."""

from __future__ import annotations

from http import HTTPStatus

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse

from ...exceptions import QueueRetired, UnknownQueue
from ...text import is_storable
from ..api.exceptions import ApiError
from ..routing.models import Routing
from ..routing.services import delete_routings, list_routings, make_routing
from .answers import Caller, answers, as_json, bad_request, check_category, read_body, text


@answers(GET="read")
def routing_list(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Answer with all routings of the tenant."""
    rows = list_routings(caller.tenant, using=caller.using)
    return as_json([_definition(row) for row in rows])


@answers(GET="read", PUT="tune", DELETE="tune")
def routing(request: HttpRequest, caller: Caller, category: str) -> HttpResponse:
    """Get, put or delete a routing, and answer with it."""
    if request.method == "PUT":
        return _put(request, caller, category)
    rows = Routing.objects.using(caller.using).filter(tenant=caller.tenant, pattern=category)
    found = rows.first() if is_storable(category) else None
    if found is None:
        raise ApiError(HTTPStatus.NOT_FOUND)
    if request.method == "DELETE":
        delete_routings(found, using=caller.using)
    return as_json(_definition(found))


def _put(request: HttpRequest, caller: Caller, category: str) -> HttpResponse:
    name = text(read_body(request, ("queue_name",)), "queue_name")
    if not is_storable(name):
        raise ApiError(HTTPStatus.NOT_FOUND, f"No such queue: {name}")
    caller.check_queue(name)
    try:
        row = make_routing(check_category(category), name, tenant=caller.tenant, using=caller.using)
    except (UnknownQueue, QueueRetired) as error:
        raise ApiError(HTTPStatus.NOT_FOUND, str(error)) from None
    except ValidationError as error:
        raise bad_request(" ".join(error.messages)) from None
    return as_json(_definition(row))


def _definition(row: Routing) -> dict[str, str]:
    return {"queue_name": row.queue, "job_category": row.pattern}
