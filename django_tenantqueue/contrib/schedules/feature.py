"""What schedules adds to the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from django.core.checks import register

from ...calls.recurrence import Cron, Every, read_when
from ...features import Feature
from .checks import check_schedules

if TYPE_CHECKING:
    from ...tasks import Task


class Schedules(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        register(check_schedules, "tenantqueue")

    def task_options(self) -> Mapping[str, Callable[[Task[..., Any], Any], Any]]:
        return {"schedule": _read_schedule}


def _read_schedule(task: Task[..., Any], value: Any) -> Cron | Every:
    when = read_when(task.name, value)
    task.check_call(when.args, when.kwargs)
    return when
