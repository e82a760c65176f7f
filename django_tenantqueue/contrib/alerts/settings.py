"""Settings of alerts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...settings import setting


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """Field names in capitals are the keys of TENANTQUEUE["ALERTS"]."""

    group: ClassVar[str] = "ALERTS"

    queue: str = setting("alerts", is_queue=True)
    """Queue of the jobs that deliver alerts: of the rule's tenant, or without a tenant. Its first
    use creates the queue, with five slots.

    Alerts do not wait behind the project's jobs."""
    interval: float = setting(10.0, above=0, most=3600)
    """Time between two checks of an alert rule.

    Alerts arrive within seconds."""
