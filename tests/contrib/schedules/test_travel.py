"""Schedules in users' tests, which set the clock."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.testing import run_pending, travel
from tests.testapp.tasks import add, noop

pytestmark = pytest.mark.django_db


def test_schedule_fires_once_when_its_tick_has_come():
    row = make_schedule("nightly", add, "0 3 * * *", args=[1])
    tick = row.next_at

    assert run_pending() == []
    with travel(tick):
        assert [job.task for job in run_pending()] == [add.name]
        assert run_pending() == []
    row.refresh_from_db()
    assert row.next_at == tick + timedelta(days=1)


def test_missed_ticks_follow_the_schedules_rule():
    make_schedule("each", add, "0 3 * * *", args=[1], catch_up=Schedule.CatchUp.ALL)
    make_schedule("skipped", noop, "0 3 * * *")

    with travel((timezone.now() + timedelta(days=3)).replace(hour=12)):
        assert [job.task for job in run_pending()] in ([add.name] * 3, [add.name] * 4)
