"""Old minute figures are merged into hours and days, and dropped in the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_tenantqueue.models import Figure
from django_tenantqueue.operations import maintain

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 5, 20, 15, 30, tzinfo=UTC)


def make_figure(at: datetime, minutes: int = 1, **columns: Any) -> Figure:
    values: dict[str, Any] = {
        "queue_id": 1,
        "task": "task",
        "error": "",
        "started": 1,
        "succeeded": 1,
        "failed": 0,
        "retried": 0,
        "cancelled": 0,
        "wait_seconds": 0.5,
        "run_seconds": 1.5,
        "waits": [1],
        "runs": [0, 1],
        "last_job_id": None,
    }
    return Figure.objects.create(at=at, minutes=minutes, **{**values, **columns})


def rows() -> list[tuple[datetime, int, int]]:
    return list(Figure.objects.order_by("at").values_list("at", "minutes", "succeeded"))


def test_minutes_are_merged_into_their_hour_when_all_of_it_is_old():
    make_figure(datetime(2026, 5, 20, 11, 10, tzinfo=UTC))
    make_figure(datetime(2026, 5, 20, 11, 50, tzinfo=UTC), succeeded=4, runs=[3], waits=[0, 0, 2])
    make_figure(datetime(2026, 5, 20, 12, 5, tzinfo=UTC))

    maintain.thin_figures("default", NOW)

    assert rows() == [
        (datetime(2026, 5, 20, 11, tzinfo=UTC), 60, 5),
        (datetime(2026, 5, 20, 12, 5, tzinfo=UTC), 1, 1),
    ]
    hour = Figure.objects.get(minutes=60)
    assert (hour.runs, hour.waits, hour.run_seconds) == ([3, 1], [1, 0, 2], 3.0)


def test_late_minute_is_added_to_the_hour_when_that_exists():
    make_figure(datetime(2026, 5, 20, 11, tzinfo=UTC), minutes=60, succeeded=10)
    make_figure(datetime(2026, 5, 20, 11, 7, tzinfo=UTC))

    maintain.thin_figures("default", NOW)

    assert rows() == [(datetime(2026, 5, 20, 11, tzinfo=UTC), 60, 11)]


def test_hours_are_merged_into_days_and_days_are_dropped_when_they_are_old():
    make_figure(datetime(2026, 5, 10, 23, tzinfo=UTC), minutes=60)
    make_figure(datetime(2026, 5, 10, 3, tzinfo=UTC), minutes=60)
    make_figure(datetime(2025, 1, 1, tzinfo=UTC), minutes=1440)

    maintain.thin_figures("default", NOW)

    assert rows() == [(datetime(2026, 5, 10, tzinfo=UTC), 1440, 2)]


def test_kinds_of_rows_stay_apart_when_they_are_merged():
    for queue_id, name, error in ((0, "", ""), (0, "task", ""), (1, "task", ""), (1, "task", "E")):
        for minute in (1, 2):
            at = datetime(2026, 5, 20, 9, minute, tzinfo=UTC)
            make_figure(at, queue_id=queue_id, task=name, error=error)

    maintain.thin_figures("default", NOW)

    assert [row[2] for row in rows()] == [2, 2, 2, 2]


def test_step_is_bounded_when_much_is_old(monkeypatch):
    monkeypatch.setattr(maintain, "BATCH", 3)
    for minute in range(5):
        make_figure(datetime(2026, 5, 20, 9, minute, tzinfo=UTC))

    assert maintain.thin_figures("default", NOW) == 3
    assert maintain.thin_figures("default", NOW) == 2
    assert rows() == [(datetime(2026, 5, 20, 9, tzinfo=UTC), 60, 5)]


def test_nothing_is_merged_when_all_is_young():
    make_figure(NOW - timedelta(hours=2))

    assert maintain.thin_figures("default", NOW) == 0
