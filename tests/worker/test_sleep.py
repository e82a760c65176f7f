"""Polling alone: the interval bounds the wait, and a fleet does not ask all at once."""

import pytest
from django.test import override_settings

from django_tenantqueue.worker.sleep import Sleep


@pytest.mark.parametrize("change", [{"NOTIFY": False}, {"POOLER": True}])
def test_looks_are_spread_below_the_interval_when_nobody_can_be_notified(change):
    with override_settings(TENANTQUEUE={**change, "POLL_INTERVAL": 2.0}):
        waits = {Sleep(1).seconds for _ in range(50)}

    assert len(waits) > 10
    assert 1.6 <= min(waits) <= max(waits) <= 2.0
