"""Settings of the metrics: keys of TENANTQUEUE."""

from __future__ import annotations

from dataclasses import dataclass

from ...exceptions import InvalidOption


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """Field names in capitals are the keys of TENANTQUEUE."""

    metrics_token: str | None = None
    """Token that scrapes of the metrics must send (`Authorization: Bearer …`). None: the page of
    the metrics is off, and a worker's `--metrics-port` asks for none."""
    metrics_open: bool = False
    """The page of the metrics answers without a token, too, when METRICS_TOKEN is None."""

    def check(self) -> None:
        """Raise InvalidOption for a weak token, without showing it."""
        token = self.metrics_token
        if token is not None and (len(token) < 16 or not token.isascii() or " " in token):
            raise InvalidOption(
                "TENANTQUEUE['METRICS_TOKEN'] must be at least 16 ASCII characters without spaces"
            )
