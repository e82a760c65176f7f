"""Settings of the HTTP API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...settings import setting

MOST_REQUESTS = 10_000_000


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Field names in capitals are the keys of TENANTQUEUE["API"]."""

    group: ClassVar[str] = "API"

    tasks: tuple[str, ...] = ()
    """Names of the tasks that clients of the HTTP API may enqueue. `*` matches no task of
    django_tenantqueue itself. HTTP jobs need a token with the scope "http" instead.

    Clients can only start tasks that the project has opened to them."""
    requests_per_minute: int | None = setting(6000, above=0, most=MOST_REQUESTS)
    """Maximum number of requests per minute with one API token, unless the token has its own limit.
    The Django cache "default" counts the requests.

    A hundred a second stops a client in a loop."""
    new_queues_per_day: int | None = setting(100, above=0, most=1_000_000)
    """Maximum number of new queues of a tenant in 24 hours, including those of code and operators.
    At this number, clients of the HTTP API and the Fireworq API cannot create further queues.

    It stops a client that puts an id into the name of a queue."""
    waits_per_token: int | None = setting(None, above=0, most=100_000)
    """Maximum number of requests with one token that wait for jobs at once, in each process of the
    site. None: 100 under ASGI, 2 under WSGI.

    Under WSGI, each waiting request occupies a thread."""
