"""The token that a request carries, how many requests it may make, and what they may name."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from django.core.cache import cache
from django.http import HttpRequest
from django.utils import timezone

from ...conf import get_settings, settings_of
from ...exceptions import RequestRefused
from ...models import TenantQueue
from ...operations.queues import Target, check_known
from ...text import is_storable
from .models import ApiToken
from .settings import ApiSettings
from .tokens import authenticate

logger = logging.getLogger("django_tenantqueue")

RETRY_SECONDS = 3600
"""`Retry-After` for a client that has reached API_QUEUES_PER_DAY."""
WINDOW = 60
"""Seconds in which requests are counted, from each full minute on."""


def token_of(request: HttpRequest) -> ApiToken | None:
    """Return the valid token of `Authorization: Bearer …`; None when there is none."""
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    return authenticate(secret.strip()) if kind.lower() == "bearer" else None


def seconds_to_wait(token: ApiToken) -> int:
    """Count a request of a token; return 0 when it may go on, else the seconds until it may.

    The counter is in the Django cache "default". Processes that share the cache share the limit;
    with a cache of its own in each process, as Django's default is, each allows as many. A request
    may go on while the cache fails.
    """
    most = token.requests_per_minute or settings_of(ApiSettings).api_requests_per_minute
    if most is None:
        return 0
    now = time.time()
    window = int(now // WINDOW)
    try:
        count = _count(f"tenantqueue:requests:{token.pk}:{window}")
    except Exception:
        logger.warning("counting requests of API tokens in the cache failed", exc_info=True)
        return 0
    return 0 if count <= most else max(1, int((window + 1) * WINDOW - now) + 1)


def check_queue(token: ApiToken, queue: str) -> None:
    """Raise RequestRefused, 403, when a token does not allow a queue."""
    if token.queues and not token.names_queue(queue):
        raise RequestRefused(
            403, f"The token does not allow the queue {queue!r}, only {token.queues}."
        )


def check_queue_of_job(token: ApiToken, tenant: str, queue: str) -> None:
    """Raise RequestRefused or UnknownQueue when a token does not allow a queue for jobs.

    A token without queues can only create those that a task or the settings name.
    """
    check_queue(token, queue)
    if not token.queues and is_storable(queue):
        check_known(Target(get_settings().database, tenant, queue), "an API token without queues")


def check_new_queues(tenant: str, count: int) -> None:
    """Raise RequestRefused, 429, if `count` more queues of a tenant exceed API_QUEUES_PER_DAY.

    Queues that code or operators have made count as well.
    """
    using, most = get_settings().database, settings_of(ApiSettings).api_queues_per_day
    if most is None:
        return
    day = timezone.now() - timedelta(days=1)
    rows = TenantQueue.objects.using(using).filter(tenant=tenant, created_at__gt=day)
    made = rows.count()
    if made + count > most:
        raise RequestRefused(
            429,
            f"The request needs {count} new queues. Tenant {tenant!r} got {made} in the last 24 "
            f"hours, and clients can create at most {most} (API_QUEUES_PER_DAY).",
            {"Retry-After": str(RETRY_SECONDS)},
        )


def check_priority(token: ApiToken, priority: int) -> None:
    """Raise RequestRefused, 403, for a priority that a token does not allow."""
    if not token.min_priority <= priority <= token.max_priority:
        raise RequestRefused(
            403,
            f"The token does not allow the priority {priority}, only {token.min_priority} to "
            f"{token.max_priority}.",
        )


def _count(key: str) -> int:
    """Count one more; return how many there are. Two that are the first at once may count one."""
    try:
        return cache.incr(key)
    except ValueError:
        cache.add(key, 1, timeout=2 * WINDOW)
        return 1
