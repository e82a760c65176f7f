"""Rows of django-celery-beat itself become schedules, which are due when Celery says so.

No version of it takes Django 6.1 so far. The oldest pair of `.ci/run` installs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import django
import pytest
from django.contrib import admin
from django.core.management import call_command
from django.db import connection
from django.test import modify_settings
from django.utils import timezone

from django_tenantqueue.contrib.schedules.models import Schedule
from tests.testapp.tasks import echo

if os.environ.get("CI") and django.VERSION < (6, 1):  # there it must not be missing
    import django_celery_beat  # noqa: F401
else:
    pytest.importorskip(
        "django_celery_beat",
        reason="Django 6.1 is not taken by django-celery-beat. Elsewhere: pip install it",
    )

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:celery"),
]
START = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def beat() -> Iterator[None]:
    """Install the app, with its tables, for one test."""
    with modify_settings(INSTALLED_APPS={"append": "django_celery_beat"}):
        from django_celery_beat import models

        with connection.schema_editor() as editor:
            for model in (
                models.SolarSchedule,
                models.IntervalSchedule,
                models.ClockedSchedule,
                models.CrontabSchedule,
                models.PeriodicTasks,
                models.PeriodicTask,
            ):
                editor.create_model(model)
        yield
    for model in [m for m in admin.site._registry if m._meta.app_label == "django_celery_beat"]:
        admin.site.unregister(model)  # the app's installation has discovered its admin


def add(name: str, **columns: Any) -> Any:
    """Store a row as the admin of the package does, with its checks."""
    from django_celery_beat.models import PeriodicTask

    row = PeriodicTask(name=name, task=echo.name, **columns)
    row.full_clean()
    row.save()
    return row


def cron(expression: str, zone: str = "UTC") -> dict[str, Any]:
    from django_celery_beat.models import CrontabSchedule

    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    fields = dict(zip(names, expression.split(), strict=True))
    row = CrontabSchedule(timezone=ZoneInfo(zone), **fields)
    row.full_clean()
    row.save()
    return {"crontab": row}


def every(number: int, period: str) -> dict[str, Any]:
    from django_celery_beat.models import IntervalSchedule

    return {"interval": IntervalSchedule.objects.create(every=number, period=period)}


def imported() -> dict[str, Schedule]:
    """Import all rows, and return the schedules by their names."""
    call_command("tenantqueue", "schedules", "import-beat")
    return {row.name: row for row in Schedule.objects.all()}


def ticks_of(crontab: Any, after: datetime, count: int) -> list[datetime]:
    """Return when Celery would run a task next."""
    schedule, found = crontab.schedule, []
    for _ in range(count):
        schedule.nowfun = lambda moment=after: moment.astimezone(schedule.tz)
        last, delta, _now = schedule.remaining_delta(after.astimezone(schedule.tz), schedule.tz)
        after = (last + delta).astimezone(UTC)
        found.append(after)
    return found


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("* * * * *", "UTC"),
        ("*/7 * * * *", "Asia/Kathmandu"),
        ("30 3 * * *", "Europe/Berlin"),
        ("0,30 8-17 * * mon-fri", "America/New_York"),
        ("15 6 1,15 * *", "Asia/Tokyo"),
        ("0 0 28-31 2 *", "UTC"),
        ("0 12 * 1,7 sun", "Australia/Lord_Howe"),
        ("5 4 * * 0,6", "UTC"),
        ("0 9 */5 * *", "UTC"),
        ("0 9 */2 * 1-5", "UTC"),
        ("10-50/20 */6 * */3 *", "UTC"),
    ],
)
def test_crontab_is_due_when_celery_says_so(expression: str, zone: str) -> None:
    row = add("cron", **cron(expression, zone))
    schedule = imported()["cron"]

    ours = list(islice(schedule.recurrence.ticks(START), 20))

    assert schedule.time_zone == zone
    assert ours == ticks_of(row.crontab, START, 20)


@pytest.mark.parametrize(
    ("number", "period", "expression"),
    [
        (2, "days", "2d"),
        (36, "hours", "1d 12h"),
        (90, "minutes", "1h 30m"),
        (45, "seconds", "45s"),
        (5_000_000, "microseconds", "5s"),
    ],
)
def test_interval_of_each_period_is_imported(number: int, period: str, expression: str) -> None:
    row = add("interval", start_time=START, **every(number, period))
    schedule = imported()["interval"]

    length = row.interval.schedule.run_every
    ours = list(islice(schedule.recurrence.ticks(START - timedelta(days=9)), 3))

    assert schedule.expression == expression
    assert [later - earlier for earlier, later in pairwise(ours)] == [length] * 2
    assert ours[0] in (START, START + length)


def test_row_is_imported_with_all_that_a_schedule_has(capsys: pytest.CaptureFixture[str]) -> None:
    from django_celery_beat.models import ClockedSchedule, PeriodicTask

    soon = timezone.now() + timedelta(days=3)
    clocked = ClockedSchedule.objects.create(clocked_time=soon)
    add(
        "full",
        **cron("0 3 * * *"),
        args='["a", [1, null]]',
        kwargs='{"b": {"c": 1.5}}',
        queue="reports",
        priority=7,
        expires=soon,
        headers='{"x": 1}',
        description="Every night.",
    )
    add("late", **every(1, "hours"), expire_seconds=60, enabled=False)
    add("once", clocked=clocked, one_off=True)
    PeriodicTask.objects.create(name="own", task="celery.backend_cleanup", **cron("0 4 * * *"))

    call_command("tenantqueue", "schedules", "import-beat", "--enable")

    found = {row.name: row for row in Schedule.objects.all()}
    assert set(found) == {"full", "late", "once"}
    full = found["full"]
    assert (full.queue, full.ends_at, full.enabled) == ("reports", soon, True)
    assert (full.args, full.kwargs) == (["a", [1, None]], {"b": {"c": 1.5}})
    assert (found["late"].enabled, found["once"].enabled) == (False, True)
    assert found["once"].next_at == soon
    output = capsys.readouterr().out
    for note in ("priority 7", "expire_seconds", "exchange, routing key and headers"):
        assert f"{note} is left out" in output or f"{note} are left out" in output
    assert "3 schedules imported, 0 failed" in output


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (lambda: {"solar": solar()}, "solar schedules are not supported"),
        (lambda: every(5, "microseconds"), "is not an interval"),
        (lambda: {**every(5, "minutes"), "one_off": True}, "runs once at its next time"),
        (lambda: cron("0 9 1 * 1"), "must both match in Celery"),
    ],
)
def test_row_that_no_schedule_can_say_is_refused(
    capsys: pytest.CaptureFixture[str], columns: Any, said: str
) -> None:
    add("bad", **columns())
    add("good", **cron("0 3 * * *"))

    with pytest.raises(SystemExit):
        call_command("tenantqueue", "schedules", "import-beat")

    assert said in capsys.readouterr().err
    assert list(Schedule.objects.values_list("name", flat=True)) == ["good"]


def solar() -> Any:
    from django_celery_beat.models import SolarSchedule

    return SolarSchedule.objects.create(event="sunrise", latitude=52, longitude=13)
