"""Which tenants a user of the admin may see: all, or those that a callable of the project names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar, cast

from django.core.signals import setting_changed
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.module_loading import import_string

from ..conf import get_settings
from ..exceptions import InvalidOption
from ..models import Job, TenantQueue

_M = TypeVar("_M", bound=Model)
_KEPT = "_tenantqueue_visible_tenants"
FLEET_MODELS = ("worker", "taskcontrol", "duty")
"""Models whose rows belong to no tenant: users who see some tenants only see none of them."""


@cache
def _callable(path: str) -> Callable[[Any], Iterable[str] | None]:
    return cast("Callable[[Any], Iterable[str] | None]", import_string(path))


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "TENANTQUEUE":
        _callable.cache_clear()


setting_changed.connect(_forget)


def tenants_of(user: Any) -> frozenset[str] | None:
    """Return the tenants that a user may see; None: all.

    Raises InvalidOption when VISIBLE_TENANTS returns something else than strings or None.
    """
    path = get_settings().visible_tenants
    if path is None:
        return None
    found = _callable(path)(user)
    if found is None:
        return None
    # a str is an iterable of str, too: read as one, "ab" would show the tenants "a" and "b"
    if not isinstance(found, str | bytes) and isinstance(found, Iterable):
        tenants = frozenset(found)
        if all(isinstance(tenant, str) for tenant in tenants):
            return tenants
    raise InvalidOption(
        f"VISIBLE_TENANTS {path!r} returned {found!r}: it must be a list of tenants, or None for "
        "all of them"
    )


def visible_tenants(request: HttpRequest) -> frozenset[str] | None:
    """Return the tenants that the user of a request may see; None: all. Asked once a request."""
    if not hasattr(request, _KEPT):
        setattr(request, _KEPT, tenants_of(request.user))
    return cast("frozenset[str] | None", getattr(request, _KEPT))


def is_limited(request: HttpRequest) -> bool:
    """Return whether the user of a request sees some tenants only."""
    return visible_tenants(request) is not None


def sees(request: HttpRequest, tenant: str) -> bool:
    """Return whether the user of a request may see a tenant."""
    tenants = visible_tenants(request)
    return tenants is None or tenant in tenants


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
