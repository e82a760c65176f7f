"""When a supervisor takes its children's locks for lost, and when nobody can rescue their jobs."""

from __future__ import annotations

import select
import time
from datetime import timedelta
from math import inf

import psycopg
import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue.models import Worker
from django_tenantqueue.operations.rescue import LOOK_SECONDS, SETTLE_SECONDS
from django_tenantqueue.queries import rescue, workers
from django_tenantqueue.queries.workers import NewWorker
from django_tenantqueue.worker.connection import PROBE_SECONDS
from django_tenantqueue.worker.supervisor import lease as module
from django_tenantqueue.worker.supervisor.lease import LEASE_SECONDS, RETRY_SECONDS, Lease
from django_tenantqueue.worker.supervisor.maintenance import Maintenance
from django_tenantqueue.worker.waiting import next_tick
from tests.timing import assert_within

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """The time that the lease sees; it passes when a test says so."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        """Return the time, which never stands still."""
        return time.monotonic() + self.passed

    def to_tick(self) -> None:
        """Let time pass until a probe would be due: the next one is a whole interval away."""
        now = self.monotonic()
        self.passed += next_tick(now, PROBE_SECONDS) - now


class Server:
    """Stands between a lease and the server once `refusal` is set."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.refusal: str | None = None
        self.is_rejecting = False
        self.seconds = 0.0
        """How long an attempt to connect takes."""
        self.attempts = 0
        self.ports: list[str] = []
        self.pings = 0

    def connect(self, *args, **options):
        self.attempts += 1
        self.ports.append(options.get("port"))
        self.clock.passed += self.seconds
        if self.refusal is not None:
            raise psycopg.OperationalError(self.refusal.format(**options))
        return connect(*args, **options)

    def ping(self, alias: str, timeout: int, **place: str) -> bool:
        """Say whether the server answers that it is not ready."""
        self.pings += 1
        return self.is_rejecting


connect = module.connect


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def server(monkeypatch, clock):
    made = Server(clock)
    monkeypatch.setattr(module, "connect", made.connect)
    monkeypatch.setattr(module, "is_rejecting", made.ping)
    return made


@pytest.fixture
def lease(server, monkeypatch):
    monkeypatch.setattr(rescue, "has_followed", lambda _: False)  # whatever server the tests have
    made = Lease("default", "test")
    made.register(NewWorker("test.0", "here", 1, 1, "0", (), (), (), 1, 1))
    made.check()
    yield made
    made.close()


def end_backend(lease: Lease) -> None:
    """Have the server end the connection of the lease, and wait until it has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [lease.connection.info.backend_pid])


def try_for(lease: Lease, seconds: float, clock: Clock) -> bool:
    """Check as often as a supervisor does; return whether the children had to die."""
    until = clock.passed + seconds
    spoke = True
    while clock.passed < until:
        lease.check(at_once=spoke)
        spoke = False
        if lease.is_overdue:
            return True
        clock.passed += max(0.01, lease.seconds_to_check)
    return False


def test_children_must_die_when_the_connection_cannot_be_made_within_the_grace(
    lease, server, clock
):
    end_backend(lease)
    server.refusal = 'database "test" is not currently accepting connections'

    assert not try_for(lease, LEASE_SECONDS - 0.3, clock)
    assert not lease.is_held
    assert try_for(lease, 1.0, clock)


def test_children_live_when_the_connection_is_made_anew_within_the_grace(lease, server, clock):
    end_backend(lease)
    server.refusal = "no route"
    lease.check(at_once=True)

    server.refusal = None
    clock.passed += 0.3
    lease.check()

    assert lease.is_held
    assert not try_for(lease, 5.0, clock)
    (worker_id,) = lease._held
    assert not rescue.find_dead_workers("default", settle_seconds=0.0, lease_seconds=30.0)
    assert workers.read_orders(lease.connection, [worker_id])


@pytest.mark.parametrize(
    "refusal",
    [
        "connection to server failed: Connection refused",
        "FATAL:  the database system is starting up",
        "FATAL:  the database system is not yet accepting connections",
        "server closed the connection unexpectedly",
    ],
)
def test_children_live_when_the_server_answers_nobody(lease, server, clock, refusal):
    end_backend(lease)
    server.refusal = refusal

    assert not try_for(lease, 60.0, clock)


def test_children_must_die_when_a_proxy_refuses(lease, server, clock, monkeypatch):
    """The server that it has lost may go on, and free the locks."""
    end_backend(lease)
    monkeypatch.setattr(module, "is_direct", lambda _: False)
    lease.check(at_once=True)
    lease.check()
    assert lease.is_held
    end_backend(lease)
    server.refusal = "connection to server failed: Connection refused"

    assert try_for(lease, LOOK_SECONDS, clock)


def test_worker_gives_a_sign_of_life_when_its_lock_is_taken_again(lease):
    """Looks at the lock alone may all fall into moments in which it is free."""
    (worker_id,) = lease._held
    look = {"settle_seconds": 0.0, "lease_seconds": 30.0}
    Worker.objects.filter(pk=worker_id).update(heartbeat_at=timezone.now() - timedelta(minutes=2))
    end_backend(lease)
    assert rescue.find_dead_workers("default", **look)[worker_id] > 100.0
    lease.check(at_once=True)
    lease.check()

    end_backend(lease)

    assert rescue.find_dead_workers("default", **look)[worker_id] < 60.0


REFUSED = "connection failed: Connection refused"
STANDBY = "the server is a standby: nothing can be written there"
READ_ONLY = "connection failed: session is read-only"
UNREACHABLE = "connection failed: Network is unreachable"
CROWDED = "FATAL:  sorry, too many clients already"


@pytest.mark.parametrize(
    ("answers", "live"),
    [
        ({"db1": [REFUSED], "db2": [REFUSED]}, True),
        ({"db1": [REFUSED], "db2": [READ_ONLY]}, True),
        ({"db1": [STANDBY], "db2": [REFUSED]}, True),
        ({"db1": [UNREACHABLE, REFUSED]}, True),
        ({"db1": [REFUSED], "db2": [CROWDED]}, False),
        ({"db1": [REFUSED], "db2": [READ_ONLY], "db3": [UNREACHABLE]}, False),
        ({"db1": [STANDBY], "db2": [READ_ONLY]}, False),
        ({"db1": [STANDBY]}, False),
        ({"db1": [UNREACHABLE, CROWDED]}, False),
    ],
)
def test_children_live_when_no_host_can_be_the_server_that_others_see(
    lease, server, clock, monkeypatch, answers, live
):
    places = [{"host": host, "hostaddr": a} for host, each in answers.items() for a in each]
    monkeypatch.setattr(module, "list_addresses", lambda _: places)
    end_backend(lease)
    server.refusal = "{hostaddr}"

    assert try_for(lease, 60.0, clock) is not live


def test_children_must_die_in_time_when_no_address_answers(lease, server, clock, monkeypatch):
    """One after the other is tried, and each takes as long as a single one may."""
    tried = [{"host": "db", "hostaddr": "timeout expired", "port": str(n)} for n in range(4)]
    monkeypatch.setattr(module, "list_addresses", lambda _: tried)
    end_backend(lease)
    server.refusal, server.seconds = "{hostaddr}", 2.0
    server.ports.clear()

    assert try_for(lease, 10.0, clock)

    assert server.ports == ["0", "1"]  # the watch has killed them meanwhile


def test_next_address_is_tried_when_the_last_one_does_not_answer(lease, server, clock, monkeypatch):
    port = connection.settings_dict["PORT"]
    here = {"host": "127.0.0.1", "hostaddr": "127.0.0.1", "port": str(port)}
    places = [{"host": "db", "hostaddr": "timeout expired", "port": "1"}, here]
    monkeypatch.setattr(module, "list_addresses", lambda _: places)
    end_backend(lease)
    server.refusal, server.seconds = "{hostaddr}", 5.0
    server.ports.clear()
    lease.check(at_once=True)
    lease.check()
    server.refusal = None

    lease.check(at_once=True)

    assert server.ports == ["1", str(port)]
    assert lease.is_held


def test_nobody_is_taken_for_dead_when_the_first_attempt_to_connect_failed(server, clock):
    server.refusal = "the database system is starting up"
    lease = Lease("default", "test")
    with pytest.raises(psycopg.OperationalError, match="starting up"):
        lease.open()
    server.refusal = None
    lease.open()

    assert lease.seconds_since_change < 1.0
    lease.close()


def test_children_live_when_the_server_says_so_in_another_language(lease, server, clock):
    end_backend(lease)
    server.refusal, server.is_rejecting = "FATAL:  das Datenbanksystem startet", True

    assert not try_for(lease, 60.0, clock)


def test_children_must_die_when_others_have_taken_all_connections(lease, server, clock):
    end_backend(lease)
    server.refusal = "FATAL:  sorry, too many clients already"

    assert try_for(lease, LOOK_SECONDS, clock)


def test_children_must_die_in_time_when_an_attempt_to_connect_takes_long(lease, server, clock):
    end_backend(lease)
    server.refusal, server.seconds = "timeout expired", 2.0
    for _ in range(2):
        lease.check(at_once=True)
    asked, clock.passed = server.pings, clock.passed + 1.0

    assert try_for(lease, 10.0, clock)

    assert server.pings == asked  # each may take as long again


def test_children_live_when_a_statement_of_the_probe_is_cancelled(lease, clock, monkeypatch):
    def refuse(*args):
        raise psycopg.errors.QueryCanceled("canceling statement due to user request")

    with monkeypatch.context() as patch:
        patch.setattr(module.worker_queries, "read_orders", refuse)
        monkeypatch.setattr(psycopg.errors.QueryCanceled, "sqlstate", "57014")
        clock.to_tick()
        lease.check(at_once=True)
        assert lease.is_held
        assert 0.0 < lease.seconds_to_check <= PROBE_SECONDS  # at 0 it would turn in circles

    assert not try_for(lease, 5.0, clock)


def test_loss_is_looked_at_at_once_when_another_statement_found_it(lease, clock):
    clock.to_tick()
    lease.connection.close()

    assert lease.seconds_to_check == 0.0
    assert lease.check() == workers.read_orders(lease.connection, sorted(lease._held))
    assert lease.seconds_to_check > 0.0


def test_lease_is_held_when_it_was_connected_anew_before_a_lost_proof_is_noticed(
    lease, clock, monkeypatch
):
    def fail(_connection, _ids):
        lease.connection.close()
        lease.open()
        raise psycopg.OperationalError("the database has not answered")

    monkeypatch.setattr(workers, "read_orders", fail)
    clock.passed += PROBE_SECONDS * 1.5

    lease.prove()

    assert lease.is_held


def test_pauses_are_made_when_the_connection_stays_lost(lease, server, clock):
    end_backend(lease)
    server.refusal = "too many clients"

    try_for(lease, 0.01, clock)
    for _ in range(4):
        lease.check()

    assert lease.seconds_to_check > RETRY_SECONDS / 2
    assert server.attempts <= 4


def test_locks_are_taken_again_soon_when_the_lost_session_kept_them_for_a_while(lease, clock):
    (child,) = lease._held
    end_backend(lease)
    with connect("default", "the session that was lost") as old:
        assert rescue.hold_lease(old, child)
        lease.check(at_once=True)
        lease.check()
        rescue.end_lease(old, child)

    clock.passed += PROBE_SECONDS
    lease.check()

    with connect("default", "another") as other:
        assert not rescue.hold_lease(other, child)


def count_probes(lease: Lease, monkeypatch) -> list[float]:
    """Return a list that grows with each probe of this lease, which has just made one."""
    asked: list[float] = []
    read_orders = workers.read_orders

    def ask(*args):
        asked.append(time.monotonic())
        return read_orders(*args)

    lease.check(at_once=True)
    monkeypatch.setattr(workers, "read_orders", ask)
    return asked


def test_waiter_wakes_when_the_server_ends_the_connection(lease):
    began = time.monotonic()
    end_backend(lease)
    readable, _, _ = select.select([lease.fileno()], [], [], 10.0)

    assert readable
    assert_within(5.0, time.monotonic() - began)
    lease.check(at_once=True)
    lease.check()
    assert select.select([lease.fileno()], [], [], 0.0)[0] == []


def test_loss_is_remembered_when_the_connection_was_made_anew(lease, clock):
    assert lease.seconds_since_change == inf
    end_backend(lease)
    lease.check(at_once=True)
    lease.check()

    assert lease.seconds_since_change < 1.0
    clock.passed += SETTLE_SECONDS
    assert lease.seconds_since_change >= SETTLE_SECONDS


def test_nobody_is_taken_for_dead_when_the_own_connection_was_made_anew(lease, clock, monkeypatch):
    maintenance = Maintenance(lease)
    found: list[float] = []
    monkeypatch.setattr(
        rescue, "find_dead_workers", lambda using, **options: found.append(1.0) or {4711: inf}
    )
    maintenance._rescue("default")
    assert maintenance._dead_worker_finder._suspects

    end_backend(lease)
    lease.check(at_once=True)
    lease.check()
    maintenance._rescue("default")

    assert not maintenance._dead_worker_finder._suspects
    assert len(found) == 1
    clock.passed += SETTLE_SECONDS
    maintenance._rescue("default")
    assert maintenance._dead_worker_finder._suspects


@pytest.mark.parametrize("answer", [True, psycopg.errors.FeatureNotSupported()])
def test_nobody_is_taken_for_dead_when_the_server_may_have_taken_over_before(
    clock, monkeypatch, answer
):
    def fetch(*_):
        if isinstance(answer, Exception):
            raise answer
        return [(answer,)]

    lease = Lease("default", "test")
    with monkeypatch.context() as patched:
        patched.setattr(rescue, "fetch", fetch)
        lease.open()
    maintenance = Maintenance(lease)
    monkeypatch.setattr(rescue, "find_dead_workers", lambda using, **options: {4711: inf})
    maintenance._rescue("default")
    assert not maintenance._dead_worker_finder._suspects

    clock.passed += SETTLE_SECONDS
    maintenance._rescue("default")
    assert maintenance._dead_worker_finder._suspects
    lease.close()


def test_dead_are_looked_for_at_once_when_a_pooler_changes_the_connections(monkeypatch):
    with override_settings(TENANTQUEUE={"POOLER": True}):
        pooled = Lease("default", "test")
        pooled.open().close()
        pooled.open()
    maintenance = Maintenance(pooled)
    monkeypatch.setattr(rescue, "find_dead_workers", lambda using, **options: {4711: inf})

    maintenance._rescue("default")

    assert maintenance._dead_worker_finder._suspects
    pooled.close()


def test_nobody_is_taken_for_dead_when_maintenance_lost_the_server_behind_a_pooler(monkeypatch):
    """All heartbeats are old then."""
    with override_settings(TENANTQUEUE={"POOLER": True}):
        maintenance = Maintenance(Lease("default", "test"))
    monkeypatch.setattr(rescue, "find_dead_workers", lambda using, **options: {4711: inf})

    def refuse() -> bool:
        raise psycopg.OperationalError("the server is gone")

    monkeypatch.setattr(maintenance, "_lead_for_transaction", refuse)
    maintenance.run_once()
    maintenance._rescue("default")
    assert not maintenance._dead_worker_finder._suspects

    maintenance._interrupted_at -= SETTLE_SECONDS
    maintenance._rescue("default")
    assert maintenance._dead_worker_finder._suspects
