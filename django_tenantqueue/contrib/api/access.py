"""The token of a request, its permissions, and the tenant of the request."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.core.cache import cache
from django.http import HttpRequest
from django.utils import timezone

from ...calls.options import check_tenant
from ...conf import get_settings, settings_of, switch_database
from ...databases import database_of_tenant
from ...models import Change, TenantQueue
from ...operations.actor import acting_as
from ...operations.queues import Target, check_known
from ...text import is_storable
from .exceptions import ApiError
from .models import ApiToken
from .settings import ApiSettings
from .tokens import allowed, authenticate

logger = logging.getLogger("django_tenantqueue")

WINDOW = 60
"""Seconds in which requests are counted, from each full minute on."""
READ, SUBMIT, TUNE = ApiToken.Scope.READ, ApiToken.Scope.SUBMIT, ApiToken.Scope.TUNE


def token_of(request: HttpRequest) -> ApiToken | None:
    """Return the valid token of `Authorization: Bearer …`; None when there is none."""
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    return authenticate(secret.strip()) if kind.lower() == "bearer" else None


def seconds_to_wait(token: ApiToken) -> int:
    """Count a request of a token; return 0 if it is allowed, else the seconds to wait.

    The counter is in the Django cache "default". Processes that share the cache share the limit.
    With a cache for each process, Django's default, each process has the limit. Requests are
    allowed while the cache fails.
    """
    most = token.requests_per_minute or settings_of(ApiSettings).requests_per_minute
    if most is None:
        return 0
    now = time.time()
    window = int(now // WINDOW)
    try:
        count = _count(f"tenantqueue:requests:{token.pk}:{window}")
    except Exception:
        logger.warning(
            "counting a request of API token %s failed, it is allowed", token.pk, exc_info=True
        )
        return 0
    return 0 if count <= most else max(1, int((window + 1) * WINDOW - now) + 1)


def _count(key: str) -> int:
    """Add 1 and return the count. Two first requests at once may count as one."""
    try:
        return cache.incr(key)
    except ValueError:
        cache.add(key, 1, timeout=2 * WINDOW)
        return 1


def check_queue(token: ApiToken, queue: str) -> None:
    """Raise ApiError, 403, unless a token allows a queue."""
    if token.queues and not token.names_queue(queue):
        raise ApiError(403, f"The token does not allow the queue {queue!r}, only {token.queues}.")


def check_new_queues(tenant: str, count: int) -> None:
    """Raise ApiError, 429, if `count` more queues of a tenant exceed NEW_QUEUES_PER_DAY.

    Queues that code or operators have made count as well.
    """
    using, most = get_settings().database, settings_of(ApiSettings).new_queues_per_day
    if most is None:
        return
    day = timezone.now() - timedelta(days=1)
    rows = TenantQueue.objects.using(using).filter(tenant=tenant, created_at__gt=day)
    made = rows.count()
    if made + count > most:
        raise ApiError(
            429,
            f"The request needs {count} new queues. Tenant {tenant!r} got {made} in the last 24 "
            f"hours, and clients can create at most {most} "
            "(TENANTQUEUE['API']['NEW_QUEUES_PER_DAY']).",
            {"Retry-After": "3600"},
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """The token and the tenant of a request."""

    token: ApiToken
    tenant: str

    @property
    def name(self) -> str:
        return f"token {self.token.name}"

    def acting(self) -> AbstractContextManager[None]:
        """Record changes made inside under the name of the token."""
        return acting_as(self.name, Change.Source.API)

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise ApiError or UnknownQueue for a queue or priority that is not allowed.

        A token without queues can only create queues that a task or the settings name.
        """
        token, queue, priority = self.token, given.get("queue"), given.get("priority")
        if queue:
            check_queue(token, queue)
            if not token.queues and is_storable(queue):
                target = Target(get_settings().database, self.tenant, queue)
                check_known(target, "an API token without queues")
        if priority is not None and not token.min_priority <= priority <= token.max_priority:
            raise ApiError(
                403,
                f"The token does not allow the priority {priority}, only {token.min_priority} to "
                f"{token.max_priority}.",
            )

    def may(self, scope: str) -> bool:
        """Return whether the token has a scope, too."""
        return allowed(self.token, scope, self.tenant)


def no_token() -> ApiError:
    """Return the error for a request without a valid token."""
    return ApiError(
        401,
        "Send a valid token: Authorization: Bearer tq_…",
        {"WWW-Authenticate": 'Bearer realm="tenantqueue"'},
    )


class Needs:
    """Authenticates a request whose token has a scope for the tenant. Ninja calls it."""

    def __init__(self, scope: ApiToken.Scope) -> None:
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Caller:
        """Return the caller, and use the database of its tenant. Raises ApiError: 401, 429, 403.

        The view of urls.py ends this use.
        """
        token = token_of(request)
        if token is None:
            raise no_token()
        if seconds := seconds_to_wait(token):
            raise ApiError(
                429,
                f"The token has made too many requests: retry after {seconds} s.",
                {"Retry-After": str(seconds)},
            )
        caller = Caller(token, _tenant_of(request, token))
        if not caller.may(self.scope):
            raise ApiError(
                403,
                f"The token does not have the scope {self.scope.value!r}: use one that has it.",
            )
        switch_database(database_of_tenant(caller.tenant))
        return caller


class AsyncNeeds(Needs):
    """See Needs, for operations that are coroutines."""

    async def __call__(self, request: HttpRequest) -> Caller:  # type: ignore[override]
        """See Needs."""
        return await sync_to_async(super().__call__)(request)


def _tenant_of(request: HttpRequest, token: ApiToken) -> str:
    asked = request.GET.get("tenant")
    if token.tenant is not None:
        if asked is not None and asked != token.tenant:
            raise ApiError(
                403, f"The token is not for tenant {asked!r}: use a token of that tenant."
            )
        return token.tenant
    if asked is None:
        raise ApiError(422, "The token is for every tenant: name one in the parameter tenant.")
    return check_tenant("tenant", asked)


def caller_of(request: HttpRequest) -> Caller:
    """Return the caller of a request that Needs has authenticated."""
    found: Any = request.auth  # type: ignore[attr-defined]
    assert isinstance(found, Caller)
    return found
