"""What schedules adds to the core."""

from __future__ import annotations

from django.core.checks import register

from ...checks import check_schedules
from ...features import Feature


class Schedules(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        register(check_schedules, "tenantqueue")
