"""What the pages of the admin show to a user who may see some tenants only."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from django.contrib.auth import get_permission_codename
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from ..models import Job, TenantQueue
from ..operations.bulk_actions import TASK_PREFIX
from ..status.visible import tenants_of

_M = TypeVar("_M", bound=Model)
_KEPT = "_tenantqueue_visible_tenants"


def visible_tenants(request: HttpRequest) -> frozenset[str] | None:
    """Return the tenants that the user of a request may see; None: all. Asked once a request."""
    if not hasattr(request, _KEPT):
        setattr(request, _KEPT, tenants_of(request.user))
    return cast("frozenset[str] | None", getattr(request, _KEPT))


def is_limited(request: HttpRequest) -> bool:
    """Return whether the user of a request sees some tenants only."""
    return visible_tenants(request) is not None


def is_of_fleet(model: type[Model]) -> bool:
    """Return whether users who see some tenants only see no row of a model: `of_fleet = True`."""
    return getattr(model, "of_fleet", False)


def tenant_of(row: Model) -> str:
    """Return the tenant of a row; "" when it has none, or is about every tenant."""
    if isinstance(row, Job):
        queue = TenantQueue.objects.using(row._state.db).filter(pk=row.queue_id).first()
        return "" if queue is None else queue.tenant
    return str(getattr(row, "tenant", None) or "")


def only_visible(request: HttpRequest, rows: QuerySet[_M], path: str) -> QuerySet[_M]:
    """Return the rows whose tenant, the column at `path`, the user of a request may see."""
    tenants = visible_tenants(request)
    return rows if tenants is None else rows.filter(**{f"{path}__in": sorted(tenants)})


def may_retry(request: HttpRequest, task: str, created_by: str | None) -> bool:
    """Return whether the user may retry a job: a bulk action has the rights of its own user."""
    is_own = created_by == str(cast("Any", request.user).pk)
    return is_own or not task.startswith(TASK_PREFIX) or not is_limited(request)


def may(request: HttpRequest, action: str, model: type[Model]) -> bool:
    """Return whether the user has a permission for a model, and sees its rows."""
    opts = model._meta
    if is_of_fleet(model) and is_limited(request):
        return False
    permission = f"{opts.app_label}.{get_permission_codename(action, opts)}"
    return bool(cast("Any", request.user).has_perm(permission))


def sees_queues(request: HttpRequest) -> bool:
    """Return whether the user may open the pages of queues, and that of a tenant."""
    return may(request, "view", TenantQueue) or may(request, "change", TenantQueue)
