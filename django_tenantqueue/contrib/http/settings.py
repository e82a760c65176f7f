"""Settings of HTTP jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import ClassVar

from ...exceptions import InvalidOption
from ...settings import setting

LONGEST_REQUEST = 86_400
"""Seconds of an HTTP request."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Field names in capitals are the keys of TENANTQUEUE["HTTP"]."""

    group: ClassVar[str] = "HTTP"

    allowed_hosts: tuple[str, ...] | None = None
    """Hosts that HTTP jobs and webhooks of alerts may call. An address that is not public
    (loopback, private, link-local, metadata) needs an entry with the address or its network, such
    as "10.1.0.0/16". None: every public host, like `["*"]`.

    Customers choose the hosts of webhooks. The default protects the network of the workers."""
    tenant_hosts: str | None = setting(None, takes=1)
    """Dotted path of a callable. It takes a tenant, and returns a list of hosts that replaces
    `ALLOWED_HOSTS` for this tenant, or None. Workers cache the value for 60 seconds.

    One list serves most projects."""
    secrets: str | None = setting(None, takes=1)
    """Dotted path of a callable. It takes a tenant, and returns a list of secrets in the form
    "whsec_…" of Standard Webhooks. Each secret adds a signature to the requests of the tenant's
    HTTP jobs. Workers cache the value for 60 seconds. None: requests are not signed.

    Only the project can share secrets with the recipients."""
    timeout: float = setting(30.0, above=0, most=LONGEST_REQUEST)
    """Timeout of a request of an HTTP job, unless the job has its own.

    Many servers and proxies have a similar timeout."""
    connect_timeout: float = setting(10.0, above=0, most=3600)
    """Timeout of a new connection, including the name look-up and the TLS handshake.

    A connection that takes longer counts as failed."""
    max_redirects: int = setting(0, least=0, most=20)
    """Maximum number of redirects (307 and 308) that a request follows. Each new URL
    is checked like the first.

    A redirected POST usually means a wrong URL."""
    permanent_statuses: tuple[int, ...] = (410,)
    """HTTP statuses of an answer that end an HTTP job in `error` without a retry. The setting
    applies to jobs with `rule="status"`.

    410 (Gone) says that the endpoint will not come back. Other errors may be temporary."""
    max_body_bytes: int = setting(65_536, above=0, most=10_000_000)
    """Maximum number of bytes of an answer's body that are read and stored.

    This is enough for a page that explains an error."""
    breaker_failures: int | None = setting(10, above=0)
    """After this number of failures of an endpoint in a row, a worker process sends it one job at a
    time. The process postpones the other jobs of the endpoint until a request succeeds. None:
    never.

    A single job with the default number of attempts fails less often."""

    def check(self) -> None:
        """Raise InvalidOption for an entry that is neither a host nor a network."""
        for entry in self.hosts:
            check_host_entry("TENANTQUEUE['HTTP']['ALLOWED_HOSTS']", entry)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The entries of ALLOWED_HOSTS."""
        return ("*",) if self.allowed_hosts is None else self.allowed_hosts


def read_network(entry: str) -> IPv4Network | IPv6Network | None:
    """Return the network that an entry of ALLOWED_HOSTS names; None: it names hosts."""
    try:
        return ip_network(entry)
    except ValueError:
        return None


def check_host_entry(whose: str, entry: object) -> None:
    """Raise InvalidOption unless ALLOWED_HOSTS may have this entry."""
    if isinstance(entry, str) and (
        read_network(entry) is not None or re.fullmatch(r"[\w*.-]+", entry, re.ASCII)
    ):
        return
    raise InvalidOption(
        f"{whose} has {entry!r}: give the name of a host, with * for any text, an address or a "
        "network, such as '10.1.0.0/16', without scheme and port"
    )
