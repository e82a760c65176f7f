"""What schedules adds to the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django.core.checks import register
from django.db.models import Model

from ...duties import WhenDue
from ...features import Condition, Duty, Feature
from . import firing
from .checks import check_schedules
from .declared import sync_schedules
from .models import Schedule
from .recurrence import Cron, Every, read_when
from .troubles import CONDITIONS

if TYPE_CHECKING:
    from ...queries.base import Where
    from ...tasks import Task


class Schedules(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        register(check_schedules, "tenantqueue")

    def task_options(self) -> Mapping[str, Callable[[Task[..., Any], Any], Any]]:
        return {"schedule": _read_schedule}

    def worker_started(self, using: str) -> None:
        sync_schedules(using)

    def duties(self, look: Callable[[], Where | None]) -> Iterable[Duty]:
        due = WhenDue(
            lambda alias: firing.seconds_to_next_schedule(look() or alias), firing.fire_schedules
        )
        yield Duty("fire_schedules", due.step, 1.0, pause_after=due.pause_after)

    def conditions(self) -> Iterable[Condition]:
        """Return that schedules are late or failing."""
        return CONDITIONS

    def lists(self) -> Mapping[str, type[Model]]:
        """Return the list of schedules."""
        return {"schedules": Schedule}

    def audited(self) -> Mapping[str, type[Model]]:
        """Return the model of schedules."""
        return {"schedule": Schedule}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        """Return the table of schedules."""
        return {Schedule: "tenant"}

    def close_tenant(self, using: str, tenant: str) -> None:
        """Disable the schedules of a tenant."""
        Schedule.objects.using(using).filter(tenant=tenant).update(enabled=False)

    def forget_tenant(self, using: str, tenant: str) -> None:
        """Remove the errors of schedules of no tenant, which may quote a job's values."""
        rows = Schedule.objects.using(using).filter(tenant="")
        rows.exclude(last_error="").update(last_error="")

    def run_due(self, using: str) -> bool:
        return firing.fire_schedules(using) > 0


def _read_schedule(task: Task[..., Any], value: Any) -> Cron | Every:
    when = read_when(task.name, value)
    task.check_call(when.args, when.kwargs)
    return when
