"""The tenant of the current request or job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from ..conf import get_settings
from ..exceptions import InvalidOption
from ..text import is_storable

_current: ContextVar[str | None] = ContextVar("tenantqueue_tenant", default=None)


@cache
def _resolver(path: str) -> Callable[[], str | None]:
    try:
        found = import_string(path)
    except ImportError as error:
        raise InvalidOption(
            f"TENANTQUEUE['TENANT_RESOLVER'] {path!r}: {error}. Give the path of a function"
        ) from error
    if not callable(found):
        raise InvalidOption(
            f"TENANTQUEUE['TENANT_RESOLVER'] {path!r} is not callable: give the path of a function "
            "that returns the tenant, or None"
        )
    resolver: Callable[[], str | None] = found
    return resolver


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "TENANTQUEUE":
        _resolver.cache_clear()


setting_changed.connect(_forget)


def get_tenant() -> str:
    """Return the current tenant, "" for none.

    It is set by `use_tenant()`, which the worker enters for each job, else the result of
    `TENANTQUEUE["TENANT_RESOLVER"]`.
    """
    tenant = _current.get()
    if tenant is not None:
        return tenant
    path = get_settings().tenant_resolver
    if path is None:
        return ""
    tenant = _resolver(path)()
    if tenant is None:
        return ""
    return _checked(tenant, f"TENANT_RESOLVER {path!r} returned")


def _checked(tenant: object, whose: str) -> str:
    if not isinstance(tenant, str):
        raise InvalidOption(f"{whose} {tenant!r}: it must be a str, as in str(company.pk)")
    if not is_storable(tenant):
        raise InvalidOption(
            f"{whose} {tenant!r}: it has NUL characters or lone surrogates: remove them"
        )
    return tenant


@contextmanager
def use_tenant(tenant: str) -> Iterator[None]:
    """Make `tenant` (a str) the current tenant inside a with block.

    Raises InvalidOption for another type and for a text that cannot be stored.
    """
    token = _current.set(_checked(tenant, "use_tenant() was given"))
    try:
        yield
    finally:
        _current.reset(token)
