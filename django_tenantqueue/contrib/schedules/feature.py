"""What schedules adds to the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from django.core.checks import register

from ...duties import WhenDue
from ...features import Duty, Feature
from ...operations import firing
from ...operations.declared_schedules import sync_schedules
from .checks import check_schedules

if TYPE_CHECKING:
    from ...queries.base import Where


class Schedules(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        register(check_schedules, "tenantqueue")

    def worker_started(self, using: str) -> None:
        sync_schedules(using)

    def duties(self, look: Callable[[], Where | None]) -> Iterable[Duty]:
        due = WhenDue(
            lambda alias: firing.seconds_to_next_schedule(look() or alias), firing.fire_schedules
        )
        yield Duty("fire_schedules", due.step, 1.0, pause_after=due.pause_after)

    def run_due(self, using: str) -> bool:
        return firing.fire_schedules(using) > 0
