"""The token that a request carries, how many requests it may make, and what they may name."""

from __future__ import annotations

import logging
import time

from django.core.cache import cache
from django.http import HttpRequest

from ..conf import get_settings
from ..exceptions import RequestRefused
from ..models import ApiToken
from ..operations.queues import Target, check_known
from ..operations.tokens import authenticate
from ..text import is_storable

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


def check_queue(token: ApiToken, queue: str) -> None:
    """Raise RequestRefused, 403, when a token is for other queues."""
    if token.queues and not token.names_queue(queue):
        raise RequestRefused(
            403, f"The token may not name the queue {queue!r}: it is for {token.queues}."
        )


def check_queue_of_job(token: ApiToken, tenant: str, queue: str) -> None:
    """Raise RequestRefused or UnknownQueue when a token may not name a queue for jobs.

    One that names no queues may make none but those that the project knows of.
    """
    check_queue(token, queue)
    if not token.queues and is_storable(queue):
        check_known(Target(get_settings().database, tenant, queue), "an API token without queues")


def check_priority(token: ApiToken, priority: int) -> None:
    """Raise RequestRefused, 403, for a priority that a token may not give."""
    if not token.min_priority <= priority <= token.max_priority:
        raise RequestRefused(
            403,
            f"The token may not give the priority {priority}: it is for {token.min_priority} to "
            f"{token.max_priority}.",
        )


def _count(key: str) -> int:
    """Count one more; return how many there are. Two that are the first at once may count one."""
    try:
        return cache.incr(key)
    except ValueError:
        cache.add(key, 1, timeout=2 * WINDOW)
        return 1
