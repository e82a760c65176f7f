"""What the pages of the admin show to a user who may see some tenants only."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from ..models import Job, TenantQueue
from ..status.visible import tenants_of

_M = TypeVar("_M", bound=Model)
_KEPT = "_tenantqueue_visible_tenants"
FLEET_MODELS = ("worker", "taskcontrol", "duty", "retentionrule")
"""Models whose rows belong to no tenant: users who see some tenants only see none of them."""


def visible_tenants(request: HttpRequest) -> frozenset[str] | None:
    """Return the tenants that the user of a request may see; None: all. Asked once a request."""
    if not hasattr(request, _KEPT):
        setattr(request, _KEPT, tenants_of(request.user))
    return cast("frozenset[str] | None", getattr(request, _KEPT))


def is_limited(request: HttpRequest) -> bool:
    """Return whether the user of a request sees some tenants only."""
    return visible_tenants(request) is not None


def tenant_of(row: Model) -> str:
    """Return the tenant of a row; "" when it has none."""
    if isinstance(row, Job):
        queue = TenantQueue.objects.using(row._state.db).filter(pk=row.queue_id).first()
        return "" if queue is None else queue.tenant
    return str(getattr(row, "tenant", ""))


def only_visible(request: HttpRequest, rows: QuerySet[_M], path: str) -> QuerySet[_M]:
    """Return the rows whose tenant, the column at `path`, the user of a request may see."""
    tenants = visible_tenants(request)
    return rows if tenants is None else rows.filter(**{f"{path}__in": sorted(tenants)})


def may(request: HttpRequest, action: str, model: str) -> bool:
    """Return whether the user has a permission for a model of the app, and sees its rows."""
    if model in FLEET_MODELS and is_limited(request):
        return False
    return bool(cast("Any", request.user).has_perm(f"tenantqueue.{action}_{model}"))
