"""Polling alone: the interval bounds the wait, and a fleet does not ask all at once.

Sleeping: the last look counts from the announcement.
"""

from types import SimpleNamespace

import pytest
from django.test import override_settings

from django_tenantqueue.worker import sleep
from django_tenantqueue.worker.sleep import QUICK_LOOKS, SETTLE_SECONDS, Sleep


@pytest.mark.parametrize("change", [{"NOTIFY": False}, {"POOLER": True}])
def test_looks_are_spread_below_the_interval_when_nobody_can_be_notified(change):
    with override_settings(TENANTQUEUE={**change, "POLL_INTERVAL": 2.0}):
        waits = {Sleep(1).seconds for _ in range(50)}

    assert len(waits) > 10
    assert 1.6 <= min(waits) <= max(waits) <= 2.0


def test_last_look_comes_after_the_announcement_when_that_takes_long(monkeypatch):
    clock = SimpleNamespace(now=100.0)

    def take_long(*_):
        clock.now += 0.05

    monkeypatch.setattr(sleep, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(sleep.queries, "listen", take_long)
    monkeypatch.setattr(sleep.queries, "sleep_worker", take_long)
    sleeper = Sleep(1)
    for _ in QUICK_LOOKS:
        sleeper.next_look(None, clock.now)
    assert sleeper.next_look(None, clock.now) == 0.0

    assert sleeper.next_look(None, clock.now) == pytest.approx(SETTLE_SECONDS)
    assert sleeper.next_look(None, clock.now + SETTLE_SECONDS) is None
