"""Queues: their definitions, their numbers, and who serves them."""

from __future__ import annotations

from http import HTTPStatus
from sys import float_info
from typing import Any

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse

from ... import __version__
from ...calls.options import check_queue
from ...conf import get_settings
from ...exceptions import InvalidOption, RequestRefused
from ...models import TenantQueue
from ...text import is_storable
from ..api.bearer import check_new_queues
from . import operations
from . import reads as status
from .answers import PLAIN, Caller, answers, as_json, bad_request, read_body, whole

FIELDS = ("polling_interval", "max_workers", "max_dispatches_per_second", "max_burst_size")
MOST_MILLISECONDS = 2**31 - 1


@answers(GET="read")
def version(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Answer with the version."""
    return HttpResponse(f"django_tenantqueue {__version__}\n", **PLAIN)


@answers(GET="read")
def queue_list(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Answer with the definitions of all queues of the tenant."""
    queues = status.list_queues(caller.using, caller.tenant)
    return as_json(status.describe_queues(caller.using, queues))


@answers(GET="read")
def all_stats(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Answer with the numbers of all queues of the tenant."""
    queues = status.list_queues(caller.using, caller.tenant)
    return as_json(status.read_stats(caller.using, queues))


@answers(GET="read", PUT="tune", DELETE="tune")
def queue(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Answer with the definition of a queue; put or delete it before."""
    if request.method in ("PUT", "DELETE"):
        caller.check_queue(name)
    if request.method == "PUT":
        return _put(request, caller, name)
    found = caller.find_queue(name)
    (definition,) = status.describe_queues(caller.using, [found])
    if request.method == "DELETE":
        operations.delete_queue(found, using=caller.using)
    return as_json(definition)


def _put(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    body = read_body(request, FIELDS)
    rate, burst = _read_throttle(body)
    rows = TenantQueue.objects.using(caller.using).filter(tenant=caller.tenant)
    if is_storable(name) and not rows.filter(name=name).exists():
        check_new_queues(caller.tenant, 1)
    try:
        row = operations.put_queue(
            caller.tenant,
            check_queue("queue_name", name),
            num_slots=whole(body, "max_workers") or get_settings().default_num_slots,
            max_per_second=rate,
            burst=burst,
            polling_interval=whole(body, "polling_interval", MOST_MILLISECONDS) or None,
            using=caller.using,
        )
    except InvalidOption as error:
        raise bad_request(str(error)) from None
    except ValidationError as error:
        raise bad_request(_explained(error)) from None
    (definition,) = status.describe_queues(caller.using, [row])
    return as_json(definition)


def _read_throttle(body: dict[str, Any]) -> tuple[float | None, int | None]:
    """Return the starts per second and the burst; None: no throttling."""
    rate = body.get("max_dispatches_per_second", 0)
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
    # a comparison, since a whole number may be too large for isfinite()
    if not is_number or not 0 <= rate <= float_info.max:
        raise bad_request("max_dispatches_per_second: it must be a number, 0 or more")
    burst = whole(body, "max_burst_size")
    if bool(rate) != bool(burst):
        raise bad_request("max_dispatches_per_second and max_burst_size must be set together")
    return (float(rate), burst) if rate else (None, None)


_NAMES = {
    "num_slots": "max_workers",
    "max_per_second": "max_dispatches_per_second",
    "burst": "max_burst_size",
}


def _explained(error: ValidationError) -> str:
    return " ".join(
        f"{_NAMES.get(name, name)}: {' '.join(messages)}"
        for name, messages in error.message_dict.items()
    )


@answers(GET="read")
def node(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Answer with a worker process that serves a queue."""
    worker = status.find_node(caller.using, caller.find_queue(name))
    if worker is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "No node is active for this queue")
    return as_json({"id": str(worker.pk), "host": worker.host})


@answers(GET="read")
def stats(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Answer with the numbers of a queue."""
    found = caller.find_queue(name)
    return as_json(status.read_stats(caller.using, [found])[found.name])
