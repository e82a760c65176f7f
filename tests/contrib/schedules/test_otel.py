"""Ticks are traced."""

from __future__ import annotations

import pytest
from django.utils import timezone

from django_tenantqueue.contrib.schedules import firing
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.testing import run_pending
from tests.contrib.test_otel import Spans, ids, links
from tests.contrib.test_otel import provider as provider
from tests.contrib.test_otel import spans as spans
from tests.testapp.tasks import noop


@pytest.mark.django_db
def test_tick_of_a_schedule_is_an_enqueue(spans: Spans):
    row = Schedule(task=noop.name, tenant="acme")

    firing.enqueue_tick("default", row, timezone.now())
    run_pending()

    (sent,) = spans("send")
    (processed,) = spans("process")
    assert sent.parent is None
    assert links(processed) == [ids(sent)]
