"""Jobs of schedules are routed."""

from __future__ import annotations

import pytest
from django.utils import timezone

from django_tenantqueue.contrib.schedules.firing import enqueue_tick
from django_tenantqueue.contrib.schedules.models import Schedule
from tests.contrib.routing.test_routing import route
from tests.factories import make_queue

NEEDS = "schedules"
pytestmark = pytest.mark.django_db


def test_tick_of_a_schedule_is_routed() -> None:
    route("tests.routed", "heavy")
    row = Schedule(task="tests.routed", tenant="acme")

    assert enqueue_tick("default", row, timezone.now()).queue.name == "heavy"


def test_schedule_that_names_a_queue_is_not_routed() -> None:
    queue = make_queue("acme", "nightly")
    route("*", "heavy")
    row = Schedule(task="tests.routed", tenant="acme", queue="nightly")

    assert enqueue_tick("default", row, queue.created_at).queue_id == queue.pk
