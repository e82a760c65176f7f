"""What the pages of the admin show to a user who may see some tenants only."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from django.db.models import Case, F, Model, QuerySet, Value, When
from django.http import HttpRequest

from ..models import Alert, Job, TenantQueue
from ..operations.bulk_actions import TASK_PREFIX
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


def visible_alerts(request: HttpRequest, rows: QuerySet[Alert]) -> QuerySet[Alert]:
    """Return the alerts that the user of a request may see, also those of rules of all tenants.

    An alert without a tenant is about all of them: those who see some tenants do not see it.
    """
    if not is_limited(request):
        return rows
    own_rule = When(rule__tenant=F("tenant"), then=Value(False))
    rows = only_visible(request, rows, "tenant").exclude(tenant="")
    return rows.annotate(hides_rule=Case(own_rule, default=Value(True)))


def rule_of(alert: Alert) -> str:
    """Return the rule of an alert; its kind alone where it is of tenants that the user may not see.

    The alert is one of visible_alerts().
    """
    if getattr(alert, "hides_rule", False):
        return str(alert.rule.get_kind_display())
    return str(alert.rule)


def may_retry(request: HttpRequest, task: str, created_by: str | None) -> bool:
    """Return whether the user may let a job go on: a bulk action has the rights of its own user."""
    is_own = created_by == str(cast("Any", request.user).pk)
    return is_own or not task.startswith(TASK_PREFIX) or not is_limited(request)


def may(request: HttpRequest, action: str, model: str) -> bool:
    """Return whether the user has a permission for a model of the app, and sees its rows."""
    if model in FLEET_MODELS and is_limited(request):
        return False
    return bool(cast("Any", request.user).has_perm(f"tenantqueue.{action}_{model}"))
