"""Settings of the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...exceptions import InvalidOption

OPEN = "open"
"""Value of ACCESS that requires no token. It is too short for a token."""


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """Field names in capitals are the keys of TENANTQUEUE["METRICS"]."""

    group: ClassVar[str] = "METRICS"

    access: str | None = None
    """Access to the metrics, on the site's page and a worker's `--metrics-port`. A token of at
    least 16 characters: scrapes send `Authorization: Bearer` and the token. "open": no token is
    needed. None: the metrics are off.

    The metrics name all tenants, queues and tasks, so they are off by default."""

    def check(self) -> None:
        """Raise InvalidOption for a weak token. The message does not show it."""
        token = self.access
        if token is None or token == OPEN:
            return
        if len(token) < 16 or not token.isascii() or " " in token:
            raise InvalidOption(
                "TENANTQUEUE['METRICS']['ACCESS'] must be a token of at least 16 ASCII characters "
                f"without spaces, or {OPEN!r}"
            )
