"""Rows of django-celery-beat become schedules. Stand-ins have the columns of its models."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

from django_tenantqueue.contrib.schedules.models import Schedule
from tests.testapp.tasks import echo

pytestmark = pytest.mark.django_db


class Rows(list[Any]):
    """Stands for a queryset."""

    def select_related(self, *names: str) -> Rows:
        return self

    def exclude(self, task__startswith: str) -> Rows:
        return Rows(row for row in self if not row.task.startswith(task__startswith))

    def order_by(self, *names: str) -> Rows:
        return self


def row(name: str, **columns: Any) -> SimpleNamespace:
    values: dict[str, Any] = {
        **dict.fromkeys(("crontab", "interval", "clocked", "solar", "queue", "exchange")),
        **dict.fromkeys(("routing_key", "priority", "expires", "expire_seconds", "start_time")),
        "task": echo.name,
        "args": '["a"]',
        "kwargs": "{}",
        "headers": "{}",
        "one_off": False,
        "enabled": True,
        **columns,
    }
    return SimpleNamespace(name=name, **values)


def cron(minute: str = "30", hour: str = "3", **columns: str) -> SimpleNamespace:
    days = {"day_of_month": "*", "month_of_year": "*", "day_of_week": "*"}
    values = {**days, "timezone": "Europe/Berlin", **columns}
    return SimpleNamespace(minute=minute, hour=hour, **values)


@pytest.fixture
def beat(monkeypatch: pytest.MonkeyPatch) -> Rows:
    """Return the rows of django-celery-beat, none at first."""
    rows = Rows()
    model = SimpleNamespace(_default_manager=rows)
    get_model = apps.get_model
    monkeypatch.setattr(
        apps,
        "get_model",
        lambda app, *rest, **more: (
            model if app == "django_celery_beat" else get_model(app, *rest, **more)
        ),
    )
    return rows


def test_rows_become_disabled_schedules(beat: Rows) -> None:
    moment = datetime(2090, 1, 1, tzinfo=UTC)
    beat += [
        row("cron", crontab=cron(day_of_week="mon, fri"), queue="reports"),
        row("interval", interval=SimpleNamespace(every=90, period="minutes"), start_time=moment),
        row("clocked", clocked=SimpleNamespace(clocked_time=moment), one_off=True),
        row("cleanup", task="celery.backend_cleanup", crontab=cron()),
    ]

    call_command("tenantqueue", "schedules", "import-beat", "--dry-run")
    assert not Schedule.objects.exists()
    call_command("tenantqueue", "schedules", "import-beat")
    call_command("tenantqueue", "schedules", "import-beat")

    found = {row.name: row for row in Schedule.objects.all()}
    assert set(found) == {"cron", "interval", "clocked"}
    assert (found["cron"].expression, found["cron"].queue) == ("30 3 * * mon,fri", "reports")
    assert found["cron"].time_zone == "Europe/Berlin"
    assert (found["interval"].expression, found["interval"].starts_at) == ("1h 30m", moment)
    assert found["clocked"].next_at == moment
    assert found["cron"].args == ["a"]
    assert not any(row.enabled for row in found.values())


def test_rows_are_enabled_on_request(beat: Rows) -> None:
    beat += [row("on", crontab=cron()), row("off", crontab=cron(), enabled=False)]

    call_command("tenantqueue", "schedules", "import-beat", "--enable")

    assert set(Schedule.objects.values_list("name", "enabled")) == {("on", True), ("off", False)}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"solar": SimpleNamespace(event="dawn_civil")}, "solar schedules are not supported"),
        ({"crontab": cron(day_of_month="1", day_of_week="1")}, "must both match in Celery"),
        ({"interval": SimpleNamespace(every=5, period="microseconds")}, "is not an interval"),
        ({"crontab": cron(), "one_off": True}, "runs once at its next time"),
        ({"crontab": cron(), "args": "[1"}, "are not JSON"),
        ({"crontab": cron(), "kwargs": "[]"}, "enter a JSON list and a JSON object"),
        ({"crontab": cron(), "args": '[{"__tenantqueue__": "tenant"}]'}, "reserved"),
        ({"crontab": cron(), "kwargs": '{"__tenantqueue__": "tenant"}'}, "reserved"),
        ({"crontab": cron("99")}, "Bad minute"),
    ],
)
def test_row_is_refused_with_its_reason_and_the_others_are_imported(
    beat: Rows, capsys: pytest.CaptureFixture[str], columns: dict[str, Any], said: str
) -> None:
    beat += [row("bad", **columns), row("good", crontab=cron(), priority=3)]

    with pytest.raises(SystemExit):
        call_command("tenantqueue", "schedules", "import-beat")

    assert list(Schedule.objects.values_list("name", flat=True)) == ["good"]
    output = capsys.readouterr()
    assert said in output.err
    assert "priority 3 is left out" in output.out


def test_command_says_so_when_the_app_is_missing() -> None:
    with pytest.raises(CommandError, match="not in INSTALLED_APPS"):
        call_command("tenantqueue", "schedules", "import-beat")
