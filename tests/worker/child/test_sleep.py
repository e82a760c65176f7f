"""The looks of a fleet are spread, and end in time.

Sleeping: the last look counts from the announcement, which is renewed before it runs out.
"""

import time
from types import SimpleNamespace

import pytest
from django.test import override_settings

from django_tenantqueue.operations.places import Places
from django_tenantqueue.operations.surveys import Surveys
from django_tenantqueue.worker.child import sleep
from django_tenantqueue.worker.child.sleep import (
    BUSY_SECONDS,
    IDLE_SECONDS,
    QUICK_LOOKS,
    RENEWED_AT,
    SETTLE_SECONDS,
    SLEEP_SECONDS,
    Sleep,
)


def new_sleep() -> Sleep:
    """Return the sleep of a worker that does not survey."""
    return Sleep(1, Surveys(time.monotonic, Places(time.monotonic)))


@pytest.mark.parametrize("change", [{"NOTIFY": False}, {"POOLER": True}])
def test_looks_are_spread_below_the_interval_when_nobody_can_be_notified(change):
    with override_settings(TENANTQUEUE={**change, "POLL_INTERVAL": 2.0}):
        waits = {new_sleep().seconds for _ in range(50)}

    assert len(waits) > 10
    assert 1.6 <= min(waits) <= max(waits) <= 2.0


def test_last_look_comes_after_the_announcement_when_that_takes_long(monkeypatch):
    clock = SimpleNamespace(now=100.0)

    def take_long(*_):
        clock.now += 0.05

    monkeypatch.setattr(sleep, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(sleep.queries, "listen", take_long)
    monkeypatch.setattr(sleep.queries, "sleep_worker", take_long)
    sleeper = new_sleep()
    for _ in QUICK_LOOKS:
        sleeper.next_look(None, clock.now)
    assert sleeper.next_look(None, clock.now) == 0.0

    assert sleeper.next_look(None, clock.now) == pytest.approx(SETTLE_SECONDS)
    assert sleeper.next_look(None, clock.now + SETTLE_SECONDS) is None


@pytest.fixture
def announced(monkeypatch) -> list[tuple[float, bool]]:
    """Return what is announced: until when, and whether it is a renewal."""
    announcements = []

    def sleep_worker(clock, _worker, seconds, *, renew=False):
        announcements.append((clock() + seconds, renew))
        return True

    monkeypatch.setattr(sleep.queries, "listen", lambda *_: None)
    monkeypatch.setattr(sleep.queries, "sleep_worker", sleep_worker)
    return announcements


@pytest.mark.parametrize("busy", [False, True])
def test_announcement_holds_when_nothing_comes_for_an_hour(announced, monkeypatch, busy):
    clock, looks = SimpleNamespace(now=100.0), 0
    monkeypatch.setattr(sleep, "time", SimpleNamespace(monotonic=lambda: clock.now))
    sleeper = new_sleep()

    while clock.now < 3700.0:
        look = sleeper.next_look(lambda: clock.now, clock.now, busy=busy)
        if announced:
            left = announced[-1][0] - clock.now
            # so enqueuers, which take what ends last, notify idle workers first
            assert 0 < left < BUSY_SECONDS + 0.1 if busy else left > BUSY_SECONDS + 0.1
            looks += 1
        clock.now += sleeper.seconds if look is None else look

    assert not announced[0][1]
    assert all(renewed for _, renewed in announced[1:])
    seconds = BUSY_SECONDS if busy else IDLE_SECONDS
    assert len(announced) < 2 + 3600 / (seconds - RENEWED_AT[seconds])
    assert looks < 3 + 3600 / (0.8 * SLEEP_SECONDS)


def test_worker_looks_at_once_when_its_sleep_was_ended_before_it_could_be_renewed(monkeypatch):
    monkeypatch.setattr(sleep.queries, "listen", lambda *_: None)
    monkeypatch.setattr(sleep.queries, "sleep_worker", lambda *_, renew=False: not renew)
    monkeypatch.setattr(sleep, "time", SimpleNamespace(monotonic=lambda: 100.0))
    sleeper = new_sleep()
    for _ in (*QUICK_LOOKS, "announced"):
        sleeper.next_look(None, 100.0)

    assert sleeper.next_look(None, 100.0 + IDLE_SECONDS - 1.0) == 0.0
    assert sleeper.next_look(None, 100.0 + IDLE_SECONDS - 1.0) == QUICK_LOOKS[0]


def test_looks_of_sleeping_workers_are_spread():
    waits = {new_sleep().seconds for _ in range(50)}

    assert len(waits) > 10
    assert 0.8 * SLEEP_SECONDS <= min(waits) <= max(waits) <= SLEEP_SECONDS


@pytest.mark.parametrize("renewed", [False, True])
def test_sleep_is_over_when_it_was_ended_right_after_the_announcement(monkeypatch, renewed):
    """The notification is read with the answer to the announcement."""
    monkeypatch.setattr(sleep.queries, "listen", lambda *_: None)
    monkeypatch.setattr(sleep, "time", SimpleNamespace(monotonic=lambda: 100.0))
    sleeper = new_sleep()

    def sleep_worker(*_, renew=False):
        if renew is renewed:
            sleeper.notified()
        return True

    monkeypatch.setattr(sleep.queries, "sleep_worker", sleep_worker)
    looks = [sleeper.next_look(None, 100.0) for _ in range(len(QUICK_LOOKS) + 1)]
    if renewed:
        looks.append(sleeper.next_look(None, 100.0 + IDLE_SECONDS - 1.0))

    assert looks[-1] == 0.0
    assert sleeper.next_look(None, 100.0) == QUICK_LOOKS[0]


def test_last_look_is_one_that_began_after_the_announcement_had_settled(monkeypatch):
    """One that was answered late has seen no more than when it began."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(sleep, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(sleep.queries, "listen", lambda *_: None)
    monkeypatch.setattr(sleep.queries, "sleep_worker", lambda *_, **__: True)
    sleeper = new_sleep()
    for _ in (*QUICK_LOOKS, "announced"):
        sleeper.next_look(None, 100.0)

    assert sleeper.next_look(None, 100.006, looked_at=100.001) == 0.0
    assert sleeper.next_look(None, 100.012, looked_at=100.007) is None
