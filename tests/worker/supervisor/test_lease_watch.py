"""The thread that asks for proofs of the lease, and takes a stopped process for what it is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from psycopg.pq import TransactionStatus

from django_tenantqueue.worker.supervisor import lease_watch as module
from django_tenantqueue.worker.supervisor.lease_watch import BUSY_SECONDS, LeaseWatch


class Clock:
    """time.monotonic() of the watch."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class SilentServer:
    """A connection whose statements take two seconds and fail."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.asked = 0

    def execute(self, *_args: object, **_options: object) -> None:
        self.asked += 1
        self._clock.now += module.ANSWER_SECONDS
        raise module.psycopg.OperationalError("the database has not answered")


class FakeLease:
    """A lease that is held, and counts how often it was forgiven."""

    is_held = True
    forgiven = 0

    def __init__(self, connection: SilentServer) -> None:
        self.connection = connection

    def prove(self) -> None:
        """Do nothing: the last proof is young enough."""

    def forgive(self) -> None:
        self.forgiven += 1


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_lease_is_not_forgiven_when_the_watch_itself_has_waited_for_the_server(clock):
    server = SilentServer(clock)
    lease = FakeLease(server)
    raw = SimpleNamespace(
        closed=False,
        pgconn=SimpleNamespace(transaction_status=TransactionStatus.ACTIVE),
        info=SimpleNamespace(backend_pid=1),
    )
    watch = LeaseWatch(lease, lambda: None, SimpleNamespace(connection=raw))
    while not server.asked:
        watch.run_once()
        clock.now += module.LOOK_SECONDS
        assert clock.now < 1000.0 + 2 * BUSY_SECONDS + module.ANSWER_SECONDS

    watch.run_once()

    assert lease.forgiven == 0


def test_lease_is_forgiven_when_the_process_was_stopped(clock):
    lease = FakeLease(SilentServer(clock))
    watch = LeaseWatch(lease, lambda: None)
    watch.run_once()
    clock.now += module.STOPPED_SECONDS + 0.1

    watch.run_once()

    assert lease.forgiven == 1
