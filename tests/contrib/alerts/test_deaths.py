"""A worker that died opens an alert."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_tenantqueue.contrib.alerts.check import check_rules
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import Alert
from django_tenantqueue.models import Change
from tests.operations.test_deaths import CAUSE, make_dead

pytestmark = pytest.mark.django_db


def test_rule_opens_an_alert_of_a_worker_that_died() -> None:
    make_alert_rule("dead", "worker_died", range_minutes=30, log=True)
    make_dead(crashed=True)

    check_rules("default")

    (alert,) = Alert.objects.all()
    assert (alert.label, alert.text) == ("web-1:7 (host-3)", f"The worker has died: {CAUSE}.")
    Change.objects.update(made_at=timezone.now() - timedelta(minutes=32))
    check_rules("default", timezone.now() + timedelta(minutes=1))
    assert Alert.objects.get().resolved_at is not None
