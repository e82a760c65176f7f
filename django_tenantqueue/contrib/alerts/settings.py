"""Settings of alerts: keys of TENANTQUEUE."""

from __future__ import annotations

from dataclasses import dataclass

from ...settings import setting


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """Field names in capitals are the keys of TENANTQUEUE."""

    alert_queue: str = setting("alerts", is_queue=True)
    """Queue of the jobs that deliver the messages of alerts: of the tenant of the rule, or of no
    tenant. It is made at its first use, with five slots; tune it like another."""
    alert_interval: float = setting(10.0, above=0, most=3600)
    """Seconds between two checks of an alert rule."""
