"""Schedules: jobs at the times of rows or tasks."""

from typing import TYPE_CHECKING

from ...calls.other_systems import SYNCED

ELSEWHERE = {
    **dict.fromkeys(
        ("crontab", "cron", "every", "periodic", "periodic_task", "schedule"),
        f'the option schedule= of @task, as in @task(schedule="0 3 * * *"){SYNCED}',
    ),
    **dict.fromkeys(("Cron", "Every"), "Cron or Every of django_tenantqueue"),
    **dict.fromkeys(
        ("PeriodicTask", "Schedule"), "Schedule of django_tenantqueue.contrib.schedules.models"
    ),
}
"""Names of other systems, and their replacements."""

if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        """Name the replacement of a known name. `from … import` only shows an ImportError."""
        if name in ELSEWHERE:
            raise ImportError(f"{__name__} has no {name!r}: use {ELSEWHERE[name]}", name=name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
