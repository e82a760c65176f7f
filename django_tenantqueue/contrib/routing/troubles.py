"""Routings whose queue takes no jobs any more."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _

from ...features import Condition, Severity
from ...models import TenantQueue
from ...status.amounts import PAGE
from ...status.conditions import names
from .models import Routing


def read_retired_routings(using: str, tenants: Collection[str] | None = None) -> list[str]:
    """Return the routings of a tenant whose queue is retired, up to PAGE. `tenants`: None is all.

    Jobs that they route raise QueueRetired.
    """
    retired = TenantQueue.objects.filter(
        tenant=OuterRef("tenant"), name=OuterRef("queue"), retired=True
    )
    rows = Routing.objects.using(using).exclude(tenant="")
    if tenants is not None:
        rows = rows.filter(tenant__in=sorted(tenants))
    return [str(row) for row in rows.filter(Exists(retired))[:PAGE]]


CONDITIONS = (
    Condition(
        "routing_retired",
        Severity.PEOPLE,
        title=_("routing to a retired queue"),
        fleet=_("routings to retired queues, whose jobs are rejected: %(names)s"),
        where="routings",
        find=lambda look: names(read_retired_routings(look.using, look.tenants)),
        of_tenants=True,
    ),
)
