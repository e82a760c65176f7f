"""The token that a request carries, and how many requests it may make in a minute."""

from __future__ import annotations

import logging
import time

from django.core.cache import cache
from django.http import HttpRequest

from ..conf import get_settings
from ..models import ApiToken
from ..operations.tokens import authenticate

logger = logging.getLogger("django_tenantqueue")

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
    most = token.requests_per_minute or get_settings().api_requests_per_minute
    if most is None:
        return 0
    now = time.time()
    window = int(now // WINDOW)
    try:
        count = _count(f"tenantqueue:requests:{token.pk}:{window}")
    except Exception:
        logger.warning("requests of API tokens are not counted: the cache fails", exc_info=True)
        return 0
    return 0 if count <= most else max(1, int((window + 1) * WINDOW - now) + 1)


def _count(key: str) -> int:
    """Count one more; return how many there are. Two that are the first at once may count one."""
    try:
        return cache.incr(key)
    except ValueError:
        cache.add(key, 1, timeout=2 * WINDOW)
        return 1
