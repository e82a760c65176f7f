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
    """Queue of the jobs that deliver the messages of alerts: of the tenant of the rule, or of no
    tenant. It is made at its first use, with five slots; tune it like another.

    A message waits behind none of the project's own jobs."""
    interval: float = setting(10.0, above=0, most=3600)
    """Time between two checks of an alert rule.

    People hear of an alert soon enough, and the checks of hundreds of rules cost little."""
