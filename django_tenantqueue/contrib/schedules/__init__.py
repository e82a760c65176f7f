"""Schedules: jobs at times that rows or tasks name."""

from typing import TYPE_CHECKING

from ...calls.foreign import SYNCED

ELSEWHERE = dict.fromkeys(
    ("crontab", "cron", "periodic", "periodic_task", "schedule"),
    f'the option schedule= of @task, as in @task(schedule="0 3 * * *"){SYNCED}',
)
"""Names that other systems have, and what is used here."""

if not TYPE_CHECKING:  # else every name would exist

    def __getattr__(name):
        """Say what is used in place of a known name: `from … import` shows an ImportError alone."""
        if name in ELSEWHERE:
            raise ImportError(f"{__name__} has no {name!r}: use {ELSEWHERE[name]}", name=name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
