"""The airline of a request, and its tenant queues."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from django_tenantqueue.models import TenantQueue

from . import plans
from .models import Airline

_airline: ContextVar[str | None] = ContextVar("airline", default=None)


def current_airline() -> str | None:
    """Return the code of the airline whose page is being served; TENANT_RESOLVER names this."""
    return _airline.get()


class AirlineMiddleware:
    """Sets request.airline, and the tenant of what is enqueued, from the `airline` in the URL."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve the request, and forget the airline afterwards."""
        token = _airline.set(None)
        try:
            return self.get_response(request)
        finally:
            _airline.reset(token)

    def process_view(
        self, request: HttpRequest, view: Any, args: list[Any], kwargs: dict[str, Any]
    ) -> None:
        """Find the airline; Http404 if there is none of that code."""
        code = kwargs.get("airline")
        if code is not None:
            request.airline = get_object_or_404(Airline, pk=code)  # type: ignore[attr-defined]
            _airline.set(code)


def make_queues(airline: Airline) -> None:
    """Create the airline's missing queues, with its plan's slots and weight."""
    plan = plans.PLANS[airline.plan]
    for name, slots in plan.slots.items():
        TenantQueue.objects.get_or_create(
            tenant=airline.code,
            name=name,
            defaults={"num_slots": slots, "weight": plan.weight},
        )


def apply_plan(airline: Airline) -> None:
    """Give the airline's queues the slots and weight of its plan; the next claim follows them."""
    make_queues(airline)
    plan = plans.PLANS[airline.plan]
    for queue in TenantQueue.objects.filter(tenant=airline.code, name__in=plan.slots):
        queue.tune(num_slots=plan.slots[queue.name], weight=plan.weight)
