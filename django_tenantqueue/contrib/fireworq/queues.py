"""Queues: their definitions, their numbers, and who serves them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from sys import float_info
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse

from ... import __version__
from ...calls.options import check_queue
from ...conf import get_settings
from ...exceptions import InvalidOption
from ...models import TenantQueue, Worker
from ...operations import control
from ...operations.tuning import add_row
from ...queries.control import count_queues
from ...queries.figures import Counts, sum_of_queues
from ...status.display_limits import COUNTED_TO, READ
from ...status.queue_loads import loads
from ...status.served_queues import Takers, going_on, read_takers
from ...text import is_storable
from ..api.access import check_new_queues
from ..api.exceptions import ApiError
from .answers import PLAIN, Caller, answers, as_json, bad_request, read_body, whole
from .lists import EVERYTHING
from .models import FireworqQueue

FIELDS = ("polling_interval", "max_workers", "max_dispatches_per_second", "max_burst_size")
NO_LIMIT = 1_000_000
"""`max_workers` of a queue without a limit: the maximum of slots."""
THROTTLED_INTERVAL, USUAL_INTERVAL = 100, 200
"""Milliseconds that Fireworq says of a queue whose definition names no polling interval."""


@answers(GET="read")
def version(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Answer with the version."""
    return HttpResponse(f"django_tenantqueue {__version__}\n", **PLAIN)


@answers(GET="read")
def queue_list(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Answer with the definitions of all queues of the tenant."""
    queues = list_queues(caller.using, caller.tenant)
    return as_json(describe_queues(caller.using, queues))


@answers(GET="read")
def all_stats(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Answer with the numbers of all queues of the tenant."""
    queues = list_queues(caller.using, caller.tenant)
    return as_json(read_stats(caller.using, queues))


@answers(GET="read", PUT="tune", DELETE="tune")
def queue(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Answer with the definition of a queue; put or delete it before."""
    if request.method in ("PUT", "DELETE"):
        caller.check_queue(name)
    if request.method == "PUT":
        return _put(request, caller, name)
    found = caller.find_queue(name)
    (definition,) = describe_queues(caller.using, [found])
    if request.method == "DELETE":  # it takes no new jobs and starts none until it is put again
        control.tune_queue(found.pk, using=caller.using, retired=True, paused=True)
    return as_json(definition)


def _put(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    body = read_body(request, FIELDS)
    rate, burst = _read_throttle(body)
    rows = TenantQueue.objects.using(caller.using).filter(tenant=caller.tenant)
    if is_storable(name) and not rows.filter(name=name).exists():
        check_new_queues(caller.tenant, 1)
    try:
        row = put_queue(
            caller.tenant,
            check_queue("queue_name", name),
            num_slots=whole(body, "max_workers") or get_settings().slots_of(caller.tenant),
            max_per_second=rate,
            burst=burst,
            polling_interval=whole(body, "polling_interval", 2**31 - 1) or None,
            using=caller.using,
        )
    except InvalidOption as error:
        raise bad_request(str(error)) from None
    except ValidationError as error:
        raise bad_request(_explained(error)) from None
    (definition,) = describe_queues(caller.using, [row])
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
    worker = find_node(caller.using, caller.find_queue(name))
    if worker is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "No node is active for this queue")
    return as_json({"id": str(worker.pk), "host": worker.host})


@answers(GET="read")
def stats(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Answer with the statistics of a queue."""
    found = caller.find_queue(name)
    return as_json(read_stats(caller.using, [found])[found.name])


def put_queue(
    tenant: str,
    name: str,
    *,
    num_slots: int | None,
    max_per_second: float | None,
    burst: int | None,
    polling_interval: int | None,
    using: str,
) -> TenantQueue:
    """Create a queue, or redefine an existing one; return it.

    A deleted queue accepts and starts jobs again, the waiting ones first. Raises Django's
    ValidationError for a wrong value.
    """
    columns = {"num_slots": num_slots, "max_per_second": max_per_second, "burst": burst}
    row = TenantQueue(tenant=tenant, name=name, **columns)
    row.clean_fields(exclude=("id", "created_at"))
    rows = TenantQueue.objects.using(using).filter(tenant=tenant, name=name)
    with transaction.atomic(using=using):
        found = rows.first()
        if found is None:
            try:
                add_row(using, row, ("tenant", "name", *columns))
            except IntegrityError:  # another one has made it
                found = rows.get()
        if found is not None:
            back = {"retired": False, "paused": False} if found.retired else {}
            control.tune_queue(found.pk, using=using, **columns, **back)
        queue = rows.get()
        FireworqQueue.objects.using(using).update_or_create(
            pk=queue.pk, defaults={"polling_interval": polling_interval}
        )
    return queue


def list_queues(using: str, tenant: str) -> list[TenantQueue]:
    """Return the queues of a tenant, by name."""
    rows = TenantQueue.objects.using(using).filter(tenant=tenant, retired=False)
    return list(rows.order_by("name"))


def describe_queues(using: str, queues: Sequence[TenantQueue]) -> list[dict[str, Any]]:
    """Return the definitions of queues."""
    rows = FireworqQueue.objects.using(using).filter(pk__in=[queue.pk for queue in queues])
    intervals = dict(rows.values_list("pk", "polling_interval"))
    return [_definition(queue, intervals.get(queue.pk)) for queue in queues]


def _definition(queue: TenantQueue, interval: int | None) -> dict[str, Any]:
    throttle = {}
    if queue.max_per_second is not None:
        interval = THROTTLED_INTERVAL
        throttle = {
            "max_dispatches_per_second": queue.max_per_second,
            "max_burst_size": queue.burst_size,
        }
    return {
        "name": queue.name,
        "polling_interval": interval or USUAL_INTERVAL,
        "max_workers": slots_of(queue),
        **throttle,
    }


def slots_of(queue: TenantQueue) -> int:
    """Return the `max_workers` of a queue."""
    return NO_LIMIT if queue.num_slots is None else queue.num_slots


def read_stats(using: str, queues: Sequence[TenantQueue]) -> dict[str, dict[str, int]]:
    """Return the statistics of queues by name."""
    ids = [queue.pk for queue in queues]
    now = datetime.now(UTC)
    since = now.replace(second=0, microsecond=0) - timedelta(minutes=1)
    seconds = (now - since).total_seconds()
    totals = sum_of_queues(using, ids, since=EVERYTHING)
    lately = sum_of_queues(using, ids, since=since)
    pushes = {row.pk: row for row in FireworqQueue.objects.using(using).filter(pk__in=ids)}
    found = loads(using, ids)
    busy = [pk for pk, load in found.items() if load.running >= COUNTED_TO]
    counted = count_queues(using, busy, running=READ * 5, waiting=0) if busy else ()
    running = {load.queue_id: load.running for load in (*found.values(), *counted)}
    takers = read_takers(using)
    return {
        queue.name: {
            **_totals(totals.get(queue.pk, Counts()), pushes.get(queue.pk)),
            "pushes_per_second": round(_pushes_since(since, pushes.get(queue.pk)) / seconds),
            "pops_per_second": round(lately.get(queue.pk, Counts()).started / seconds),
            "outstanding_jobs": found[queue.pk].waiting,
            "total_workers": slots_of(queue),
            "idle_workers": max(0, slots_of(queue) - running[queue.pk]),
            "active_nodes": int(takers.serve(queue)),
        }
        for queue in queues
    }


def _totals(counts: Counts, pushed: FireworqQueue | None) -> dict[str, int]:
    return {
        "total_pushes": 0 if pushed is None else pushed.pushes,
        "total_pops": counts.started,
        "total_successes": counts.succeeded,
        "total_failures": counts.failures,
        "total_permanent_failures": counts.failed,
        "total_completes": counts.succeeded + counts.failed,
        "total_elapsed": round(1000 * (counts.wait_seconds + counts.run_seconds)),
    }


def _pushes_since(minute: datetime, pushed: FireworqQueue | None) -> int:
    """Return the pushes since the last whole minute."""
    if pushed is None or pushed.minute is None or pushed.minute < minute:
        return 0
    return pushed.pushes_in_minute + (pushed.pushes_before if pushed.minute > minute else 0)


def find_node(using: str, queue: TenantQueue) -> Worker | None:
    """Return a worker process that takes jobs of a queue, or None."""
    workers = going_on(using).order_by("pk")
    return next((worker for worker in workers if Takers.of([worker]).serve(queue)), None)
