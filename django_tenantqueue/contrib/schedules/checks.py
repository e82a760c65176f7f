"""System checks of schedules."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error

from ...calls.sources import registered_tasks
from ...exceptions import InvalidOption
from .recurrence import EPOCH, Recurrence


def check_schedules(**kwargs: Any) -> list[CheckMessage]:
    """E010: the times that a task declares cannot be used."""
    found: list[CheckMessage] = []
    for task in registered_tasks().values():
        if (when := task.extra.get("schedule")) is None:
            continue
        try:
            Recurrence(when.kind, when.expression, when.time_zone, EPOCH).check()
        except InvalidOption as error:
            found.append(
                Error(
                    f"The schedule of task {task.name} cannot be used: {error}",
                    hint="Correct the schedule=… of its @task.",
                    id="tenantqueue.E010",
                )
            )
    return found
