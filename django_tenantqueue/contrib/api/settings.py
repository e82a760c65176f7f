"""Settings of the HTTP API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...settings import setting

MOST_REQUESTS = 10_000_000
"""Requests of an API token in a minute."""


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Field names in capitals are the keys of TENANTQUEUE["API"]."""

    group: ClassVar[str] = "API"

    tasks: tuple[str, ...] = ()
    """Names of the tasks that the HTTP API may enqueue. `*` stands for any text. It matches no task
    of django_tenantqueue itself. HTTP jobs need the scope "http" of a token instead.

    Clients can start nothing that the project has not opened to them."""
    requests_per_minute: int | None = setting(6000, above=0, most=MOST_REQUESTS)
    """Requests that each API token may make in a minute, where its row says nothing else. None: no
    limit. They are counted in the Django cache "default".

    A hundred a second is more than most clients need, and stops one that loops."""
    new_queues_per_day: int | None = setting(100, above=0, most=1_000_000)
    """New queues of one tenant that clients of the HTTP API and the Fireworq API may make in 24
    hours. Those that code or operators have made count as well. None: no limit.

    A client that puts an id into the name of a queue is noticed at once."""
    waits_per_token: int | None = setting(None, above=0, most=100_000)
    """Requests of one token that may wait for jobs at once in each process of the site. None: 100
    under ASGI, and 2 under WSGI.

    Under WSGI each of them keeps a thread of the server."""
