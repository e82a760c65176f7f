"""Reads rows of django-celery-beat as schedules, without importing its models."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from ...exceptions import InvalidOption
from .models import Schedule
from .recurrence import CRON, INTERVAL, ONCE, interval_text
from .services import stored_call

PERIODIC_TASK = ("django_celery_beat", "PeriodicTask")


def read_periodic_task(row: Any) -> tuple[Schedule, list[str]]:
    """Return a disabled, unsaved schedule of a PeriodicTask, and notes on what it leaves out.

    Raises InvalidOption for options that a schedule does not have, and InvalidArgument.
    """
    notes = []
    if row.one_off and row.clocked is None:
        raise InvalidOption("it runs once at its next time: add a schedule of the kind “once”")
    if row.priority is not None:
        notes.append(f"priority {row.priority} is left out: Celery's numbers mean something else")
    if row.expire_seconds is not None:
        notes.append("expire_seconds is left out: use expires_at of the task")
    if any((row.exchange, row.routing_key, row.headers not in ("", "{}", None))):
        notes.append("exchange, routing key and headers are left out")
    try:
        args, kwargs = json.loads(row.args or "[]"), json.loads(row.kwargs or "{}")
    except ValueError as error:
        raise InvalidOption(f"its arguments are not JSON: {error}") from None
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise InvalidOption("its arguments do not fit: enter a JSON list and a JSON object")
    made = Schedule(
        name=row.name,
        task=row.task,
        queue=row.queue or "",
        enabled=False,
        starts_at=row.start_time,
        ends_at=row.expires,
        **_times(row),
        **stored_call(args, kwargs),
    )
    return made, notes


def _times(row: Any) -> dict[str, str]:
    if row.crontab is not None:
        cron = row.crontab
        day, weekday = cron.day_of_month, cron.day_of_week
        if not day.startswith("*") and not weekday.startswith("*"):
            raise InvalidOption(
                f"day {day!r} and weekday {weekday!r} must both match in Celery, and one of "
                "them in cron: make two schedules, or check the day in the task"
            )
        fields = (cron.minute, cron.hour, day, cron.month_of_year, weekday)
        expression = " ".join("".join(field.split()) for field in fields)
        return {"kind": CRON, "expression": expression, "time_zone": str(cron.timezone)}
    if row.interval is not None:
        length = timedelta(**{row.interval.period: row.interval.every})
        if length < timedelta(seconds=1):
            said = f"{row.interval.every} {row.interval.period}"
            raise InvalidOption(f"{said} is not an interval: the shortest is one second")
        return {"kind": INTERVAL, "expression": interval_text(length)}
    if row.clocked is not None:
        return {"kind": ONCE, "expression": row.clocked.clocked_time.isoformat()}
    if row.solar is not None:
        raise InvalidOption("solar schedules are not supported: choose a time")
    raise InvalidOption("it has no times: choose an interval or a crontab")
