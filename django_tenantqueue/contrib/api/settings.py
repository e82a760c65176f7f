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
    """Names of the tasks that clients of the HTTP API may enqueue. `*` stands for any text, but
    matches no task of django_tenantqueue itself. HTTP jobs need a token with the scope "http".

    Empty by default, so clients can only start tasks that the project has opened to them."""
    requests_per_minute: int | None = setting(6000, above=0, most=MOST_REQUESTS)
    """Maximum of requests per minute of each API token, unless the token has its own. None: no
    limit. Requests are counted in the Django cache "default".

    A hundred a second is more than most clients need, and stops one that loops."""
    new_queues_per_day: int | None = setting(100, above=0, most=1_000_000)
    """Maximum of new queues of one tenant in 24 hours, above which clients of the HTTP API and the
    Fireworq API cannot create more. Queues that code or operators created count, too. None: no
    limit.

    It stops a client that puts an id into the name of a queue."""
    waits_per_token: int | None = setting(None, above=0, most=100_000)
    """Maximum of requests of one token that wait for jobs at once, in each process of the site.
    None: 100 under ASGI, 2 under WSGI.

    Under WSGI, each waiting request occupies a thread of the server."""
