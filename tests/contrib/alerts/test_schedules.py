"""Rules about schedules."""

from __future__ import annotations

import pytest
from django.utils import timezone

from django_tenantqueue.contrib.alerts.models import Alert
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.firing import fire_schedules
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.models import TenantQueue
from tests.contrib.alerts.test_check import MINUTE, look, objects_of, rule_on
from tests.factories import make_queue
from tests.testapp.tasks import noop

NEEDS = "schedules"
pytestmark = pytest.mark.django_db


def test_late_schedule_opens_an_alert() -> None:
    rule = rule_on("schedule_late", tenant="acme")
    for tenant in ("acme", "other"):
        row = make_schedule("nightly", noop, "0 3 * * *", tenant=tenant)
        late = timezone.now() - 5 * MINUTE
        Schedule.objects.filter(pk=row.pk).update(tick_at=late, next_at=late)

    look()

    assert objects_of(rule) == ["acme / nightly"]


def test_schedule_that_always_fails_is_late_and_failing() -> None:
    """Each failure puts off the next try, on which no lateness is measured."""
    late, failing = rule_on("schedule_late"), rule_on("schedule_failing", task=noop.name)
    well = rule_on("schedule_failing", threshold=100)
    other = make_schedule("well", noop, "0 * * * *", tenant="acme")
    row = make_schedule("broken", noop, "*/5 * * * *", tenant="acme", queue="closed")
    make_queue("acme", "closed", retired=True)
    now = timezone.now()
    Schedule.objects.filter(pk=other.pk).update(next_at=now + 60 * MINUTE)
    Schedule.objects.filter(pk=row.pk).update(tick_at=now - 2 * MINUTE, next_at=now - 2 * MINUTE)
    for _ in range(3):
        assert fire_schedules("default", now) == 1
        Schedule.objects.filter(pk=row.pk).update(next_at=now)
    Schedule.objects.filter(pk=row.pk).update(next_at=now + MINUTE)

    look()

    assert objects_of(late) == objects_of(failing) == ["acme / broken"]
    assert objects_of(well) == []
    text = Alert.objects.get(rule=failing).text
    assert text.startswith("It failed 3 times in a row: QueueRetired")
    row.refresh_from_db()
    TenantQueue.objects.update(retired=False)
    assert fire_schedules("default", row.next_at) == 1
    look()
    assert objects_of(late) == objects_of(failing) == []


def test_schedule_that_waits_for_its_jitter_is_not_late() -> None:
    rule = rule_on("schedule_late")
    row = make_schedule("nightly", noop, "0 3 * * *", jitter_seconds=600)
    now = timezone.now()
    Schedule.objects.filter(pk=row.pk).update(
        failures=1, tick_at=now - 5 * MINUTE, next_at=now + MINUTE
    )

    look()

    assert objects_of(rule) == []
