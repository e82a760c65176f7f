"""Heartbeats compare the clock of the worker's machine with that of the server."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import connection

from django_tenantqueue.models import Worker
from django_tenantqueue.queries import workers as queries
from django_tenantqueue.queries.workers import HeartbeatAnswer
from django_tenantqueue.worker.child.heartbeat import Heartbeat
from tests.factories import make_worker

AT_WORK = {
    "jobs_running": 0,
    "rss_bytes": None,
    "claims_per_second": 0.0,
    "jobs_per_second": 0.0,
    "error": None,
}


class Server:
    """Answers heartbeats as a server whose clock differs by `ahead` seconds."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.written: list[float] = []

    def __call__(self, *args: Any, clock_ahead: float, **said: Any) -> HeartbeatAnswer:
        self.written.append(clock_ahead)
        return HeartbeatAnswer(False, self.ahead, False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(queries, "heartbeat_worker", made)
    return made


def beat(heartbeat: Heartbeat) -> bool:
    """Write a heartbeat; return whether the next one is due at once."""
    heartbeat.beat(connection, time.monotonic(), 0)  # type: ignore[arg-type]
    return heartbeat.next_at == 0.0


def test_wrong_clock_is_written_at_once_and_warned_of_once(server, caplog):
    heartbeat = Heartbeat(1)
    assert not beat(heartbeat)

    server.ahead = 12.3456
    assert beat(heartbeat), "its row is to tell it now"
    assert not beat(heartbeat)
    assert not beat(heartbeat)

    assert server.written == [0.0, 0.0, 12.346, 12.346]
    (record,) = caplog.records
    assert "the clock of this machine is 12.3 s ahead of that" in record.getMessage()


def test_clock_that_is_mended_is_written_at_once(server, caplog):
    heartbeat = Heartbeat(1)
    server.ahead = -5.0
    beat(heartbeat)
    server.ahead = 0.0

    assert beat(heartbeat)
    assert not beat(heartbeat)

    assert server.written[-1] == 0.0
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("ahead", [0.9, -0.9])
def test_small_difference_is_no_warning(ahead, server, caplog):
    server.ahead = ahead

    assert not beat(Heartbeat(1))

    assert not caplog.records


@pytest.mark.django_db
def test_row_tells_how_far_a_clock_is_ahead():
    worker = make_worker()

    answer = queries.heartbeat_worker("default", worker.pk, **AT_WORK, clock_ahead=-3.5)

    assert answer == HeartbeatAnswer(False, 0.0, False)
    assert Worker.objects.get(pk=worker.pk).clock_ahead_seconds == -3.5


@pytest.mark.parametrize(("shift", "expected"), [(60.0, 60.0), (-60.0, -60.0), (0.0, 0.0)])
@pytest.mark.django_db
def test_difference_is_what_the_round_trip_does_not_explain(shift, expected, monkeypatch):
    true = time.time
    monkeypatch.setattr(queries.time, "time", lambda: true() + shift)

    found = queries.read_clock_ahead("default")

    assert found == pytest.approx(expected, abs=1.0)
    assert abs(found) <= abs(expected), "at least that far"
    assert (found == 0.0) is (shift == 0.0)
