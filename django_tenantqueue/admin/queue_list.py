"""The list of tenant queues: filters and orders by what the queues do at the moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR
from django.db.models import OrderBy, QuerySet
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..models import TenantQueue
from ..status.busy_queues import Busy, busy_of_tenants, walk_busy
from ..status.queue_troubles import Trouble, busy_in_trouble, failing_queues, held_queues
from .base import LoadedChangeList
from .visible import visible_tenants


def busy_of(request: HttpRequest) -> Busy:
    """Return the busy queues, which a request reads once at most."""
    if not hasattr(request, "tenantqueue_busy"):
        using, tenants = get_settings().database, visible_tenants(request)
        seen = walk_busy(using, startable=0) if tenants is None else busy_of_tenants(using, tenants)
        request.tenantqueue_busy = seen  # type: ignore[attr-defined]
    busy: Busy = request.tenantqueue_busy  # type: ignore[attr-defined]
    return busy


class TroubleFilter(admin.SimpleListFilter):
    """Queues that need attention."""

    title = _("problem")
    parameter_name = "trouble"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            (Trouble.LATE, _("late: a job waits for over a minute")),
            (Trouble.FULL, _("full: all slots are taken, jobs wait")),
            (Trouble.FAILING, _("failing: jobs ended in error in the last hour")),
            (Trouble.PAUSED, _("paused")),
            (Trouble.NO_SLOTS, _("no slots")),
            (Trouble.NO_WORKER, _("no worker takes its jobs")),
            (Trouble.HELD, _("held: a gate holds a job for over a minute")),
        ]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[TenantQueue]
    ) -> QuerySet[TenantQueue]:
        match self.value():
            case Trouble.PAUSED:
                return queryset.filter(paused=True)
            case Trouble.NO_SLOTS:
                return queryset.filter(num_slots=0)
            case Trouble.FAILING:
                found = failing_queues(queryset.db)
            case Trouble.HELD:
                found = held_queues(queryset.db)
            case Trouble.LATE | Trouble.FULL | Trouble.NO_WORKER as trouble:
                found = busy_in_trouble(queryset.db, Trouble(trouble), busy_of(request))
            case _:
                return queryset
        request.tenantqueue_capped = found.capped  # type: ignore[attr-defined]
        return queryset.filter(pk__in=found.ids)


class QueueChangeList(LoadedChangeList):
    """Orders by the longest wait or the most active jobs: those of the busy queues alone."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self.request = request
        super().__init__(request, *args, **kwargs)

    def get_ordering_field(self, field_name: Any) -> Any:
        """Return what a column is sorted by; the busiest queues come first."""
        if ORDER_VAR not in self.params:  # it asks for all columns, to mark that of the default
            return super().get_ordering_field(field_name)
        if field_name == "waiting":
            return _in_order([queue.id for queue in busy_of(self.request).waiting])
        if field_name == "running":
            active = [queue for queue in busy_of(self.request).queues if queue.active]
            return _in_order([q.id for q in sorted(active, key=lambda q: (-q.active, q.id))])
        return super().get_ordering_field(field_name)

    @property
    def note(self) -> str:
        """Return what the list must say of its own limits; empty when it has none."""
        busy: Busy | None = getattr(self.request, "tenantqueue_busy", None)
        if not getattr(self.request, "tenantqueue_capped", busy is not None and busy.capped):
            return ""
        return gettext(
            "Too many queues are busy to check all of them. Some may be missing here or listed "
            "too low."
        )


def _in_order(ids: Sequence[int]) -> Any:
    """Return an order by the places of ids in a list; the other rows come last."""
    places = json.dumps({queue_id: place for place, queue_id in enumerate(ids)})
    place = RawSQL("(%s::jsonb ->> tenantqueue_tenantqueue.id::text)::integer", [places])
    return OrderBy(place, nulls_last=True)
