"""When a job expires, as the worker that has claimed it reads it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from tests.testapp.tasks import noop

from .loops import turned_loop


@pytest.mark.parametrize("pooler", [False, True])
@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin"])
def test_expiry_is_the_jobs_own_when_the_server_has_another_time_zone(monkeypatch, zone, pooler):
    job = noop.using(expires_at=timezone.now() + timedelta(hours=1)).delay()
    monkeypatch.setitem(
        connections.settings["default"]["OPTIONS"], "options", f"-c TimeZone={zone}"
    )
    with override_settings(TENANTQUEUE={"POOLER": pooler}), turned_loop() as worker:
        (running,) = worker.take(1)

    assert running._claimed.expires_at == job.refresh().expires_at


def test_claim_goes_on_when_a_job_expires_on_the_last_day(monkeypatch):
    last = datetime(8999, 12, 31, 23, 59, tzinfo=UTC)
    noop.using(expires_at=last).delay()
    monkeypatch.setitem(
        connections.settings["default"]["OPTIONS"], "options", "-c TimeZone=Europe/Berlin"
    )
    with turned_loop() as worker:
        (running,) = worker.take(1)

    assert running._claimed.expires_at == last
