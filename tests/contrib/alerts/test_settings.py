"""Settings of alerts."""

from __future__ import annotations

import pytest
from django.test import override_settings

from tests.testapp.tasks import add


@pytest.mark.django_db(transaction=True)
@override_settings(TENANTQUEUE={"STRICT_QUEUES": True, "ALERTS": {"QUEUE": "news"}})
def test_queue_of_alerts_is_made_when_queues_are_strict():
    add.using(tenant="acme", queue="news").delay(1, 2)
