"""One worker of the fleet does the maintenance."""

from __future__ import annotations

import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue.features import Duty
from django_tenantqueue.models import Duty as DutyRow
from django_tenantqueue.operations import control, maintain
from django_tenantqueue.queries import control as queries
from django_tenantqueue.queries.locks import KEY, LockKey
from django_tenantqueue.when_due import LOCKED_SECONDS, WhenDue
from django_tenantqueue.worker.connection import PROBE_SECONDS, connect
from django_tenantqueue.worker.supervisor import maintenance
from django_tenantqueue.worker.supervisor.lease import Lease
from django_tenantqueue.worker.supervisor.maintenance import Maintenance
from tests.factories import make_job, make_queue, state_of, states_of
from tests.process.workers import wait_until
from tests.timing import assert_within

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pair():
    leases = [Lease("default", f"test-{number}") for number in range(2)]
    yield [Maintenance(lease) for lease in leases]
    for lease in leases:
        if lease.connection is not None:
            lease.connection.close()
    connection.close()  # whose waits for locks are bounded


@pytest.fixture
def other():
    connection = connect("default", "test")
    yield connection
    connection.close()


def test_one_leads_when_there_are_two(pair):
    first, second = pair

    first.run_once()
    pause = second.run_once()

    assert (first.leading, second.leading) == (True, False)
    assert pause == PROBE_SECONDS


def end_session(maintenance: Maintenance) -> None:
    """End a supervisor's connection; the server has freed its locks then."""
    with connection.cursor() as cursor:
        backend = maintenance._lease.connection.info.backend_pid
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
        assert cursor.fetchone() == (True,)
    maintenance._lease.connection.close()


@pytest.mark.parametrize("breaks", [False, True], ids=["resigns", "connection breaks"])
def test_another_takes_over_when_the_leader_resigns_or_its_connection_breaks(pair, breaks):
    first, second = pair
    first.run_once()
    second.run_once()

    if breaks:
        end_session(first)
    else:
        first.resign()
    second.run_once()
    first.run_once()

    assert (first.leading, second.leading) == (False, True)


def test_due_jobs_are_promoted_when_it_is_run(pair):
    due = make_job(state="scheduled", run_at=timezone.now())

    pair[0].run_once()

    assert state_of(due.pk) == "ready"


def test_expired_jobs_are_cancelled_when_it_is_run(pair, monkeypatch):
    monkeypatch.setattr(maintain, "BATCH", 1)
    (duty,) = (duty for duty in pair[0]._duties if duty.name == "expire")
    duty.full_step = 1
    queue = make_queue(paused=True)
    past = timezone.now() - timedelta(seconds=1)
    expired = [make_job(queue, expires_at=past).pk for _ in range(2)]

    assert pair[0].run_once() == 0.0  # a step was full
    pair[0].run_once()

    assert states_of(expired) == dict.fromkeys(expired, "cancelled")
    assert DutyRow.objects.get(name="expire").outcome == "1"


def test_due_job_is_tried_now_and_then_when_somebody_has_locked_it(pair, other, monkeypatch):
    due = make_job(state="scheduled", run_at=timezone.now())
    tried = []
    promote = queries.promote_jobs
    monkeypatch.setattr(
        queries, "promote_jobs", lambda using, **more: tried.append(using) or promote(using, **more)
    )
    with other.transaction():
        other.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [due.pk])
        began = time.monotonic()
        while len(tried) < 2 or time.monotonic() < began + 10 * LOCKED_SECONDS:
            time.sleep(pair[0].run_once())
        took = time.monotonic() - began
    assert len(tried) <= 1 + took / LOCKED_SECONDS

    time.sleep(LOCKED_SECONDS)
    pair[0].run_once()
    assert state_of(due.pk) == "ready"


def test_pause_ends_in_time_when_the_next_job_is_due_in_a_moment():
    due = WhenDue(lambda alias: LOCKED_SECONDS / 10, maintain.promote)

    assert due.step("default") == 0
    assert due.pause_after(0) == LOCKED_SECONDS / 10


def test_failing_duty_is_tried_again_after_its_interval(pair, monkeypatch):
    make_job(state="scheduled", run_at=timezone.now())
    tried = []
    monkeypatch.setattr(queries, "promote_jobs", lambda using, **_: tried.append(using) or 1 / 0)
    end = time.monotonic() + 5 * LOCKED_SECONDS
    while time.monotonic() < end:
        time.sleep(min(LOCKED_SECONDS, pair[0].run_once()))

    assert len(tried) <= 2  # the end of an interval may lie between


def test_duties_are_due_together_when_their_intervals_end_at_the_same_time(pair, monkeypatch):
    first, second = Duty("first", lambda _using: 0, 0.5), Duty("second", lambda _using: 0, 1.0)
    for moment, duty in ((12.51, first), (12.52, second), (12.97, first)):
        monkeypatch.setattr(maintenance, "time", SimpleNamespace(monotonic=lambda now=moment: now))
        pair[0]._do(duty)

    assert first.due_at == second.due_at == 13.0


def test_pause_ends_when_the_next_job_is_due(pair):
    make_job(state="scheduled", run_at=timezone.now() + timedelta(milliseconds=450))

    pause = pair[0].run_once()

    assert pause <= 0.45


def test_grown_tables_are_seen_when_it_is_run(pair, monkeypatch):
    grown = ["tenantqueue_job_hot"]
    monkeypatch.setattr(maintain.statistics, "find_grown_tables", lambda _using: grown)

    pair[0].run_once()

    assert DutyRow.objects.get(name="refresh_statistics").outcome == "tenantqueue_job_hot"


def test_other_duties_are_done_when_one_fails(pair, monkeypatch, caplog):
    def refuse(using):
        raise ZeroDivisionError

    maintenance = pair[0]
    done: list[str] = []
    maintenance._duties[:] = [Duty("bad", refuse, 60.0), Duty("other", done.append, 60.0)]

    maintenance.run_once()

    assert done == ["default"]
    assert "maintenance task bad failed" in caplog.text
    assert "ZeroDivisionError" in DutyRow.objects.get(name="bad").error


def test_missing_table_is_named_once(pair, caplog):
    def look(using):
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM elsewhere.tenantqueue_job")

    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA IF NOT EXISTS elsewhere")
    maintenance = pair[0]
    maintenance._duties[:] = [Duty("first", look, 0.0), Duty("second", look, 0.0)]

    for _ in range(3):
        maintenance.run_once()
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA elsewhere")

    said = "table tenantqueue_job of django_tenantqueue is missing: run manage.py migrate"
    (record,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert record.getMessage() == f"maintenance task first failed, retrying: {said}"
    assert record.exc_info is None
    assert DutyRow.objects.get(name="second").error == said


def cancel_query(using):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 1; SELECT pg_sleep(1)")


def break_connection(using):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def test_other_duties_are_done_when_the_statement_of_one_is_cancelled(pair):
    maintenance, other = pair
    done: list[str] = []
    maintenance._duties[:] = [Duty("bad", cancel_query, 60.0), Duty("other", done.append, 60.0)]

    maintenance.run_once()
    other.run_once()

    assert done == ["default"]
    assert (maintenance.leading, other.leading) == (True, False)
    assert "statement timeout" in DutyRow.objects.get(name="bad").error


def test_another_leads_when_the_connection_broke_and_was_made_anew(pair):
    first, second = pair
    first._duties[:] = [Duty("bad", break_connection, 0.0)]
    first.run_once()
    first._duties[:] = []

    first.resign()
    second.run_once()

    assert second.leading


def test_lock_is_let_go_when_it_was_taken_again_after_an_error(pair):
    first, second = pair
    duties = first._duties[:]
    first._duties[:] = [Duty("bad", break_connection, 0.0)]
    first.run_once()
    first._duties[:] = duties
    wait_until(lambda: leads(first), what="it leads again")

    first.resign()

    wait_until(lambda: leads(second), what="the other one leads")


def leads(supervisor: Maintenance) -> bool:
    supervisor.run_once()
    return supervisor.leading


@pytest.mark.parametrize("pooler", [False, True])
def test_duty_gives_up_when_somebody_holds_a_row_for_long(pair, other, pooler):
    other.execute("SET idle_in_transaction_session_timeout = '5s'")
    held, due = make_job(state="running"), make_job(state="scheduled", run_at=timezone.now())
    with override_settings(TENANTQUEUE={"POOLER": pooler}), other.transaction():
        maintenance = Maintenance(Lease("default", "test"))
        cancel = Duty("cancel", lambda using: control.cancel([held.pk], using=using), 60.0)
        maintenance._duties.insert(0, cancel)
        other.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [held.pk])

        began = time.monotonic()
        maintenance.run_once()

        assert_within(2.0, time.monotonic() - began)
        assert state_of(due.pk) == "ready"
        assert "lock timeout" in DutyRow.objects.get(name="cancel").error
    maintenance.close()
    maintenance._lease.close()


def test_duty_is_recorded_when_it_did_something_and_else_now_and_then(pair):
    maintenance = pair[0]
    answers: list[object] = [7, None]
    maintenance._duties[:] = [Duty("count", lambda using: answers.pop(0), 0.0)]

    maintenance.run_once()
    first = DutyRow.objects.get(name="count")
    maintenance.run_once()
    second = DutyRow.objects.get(name="count")

    assert (first.outcome, first.runs, first.error) == ("7", 1, "")
    assert first.acted_at is not None
    assert second.ran_at == first.ran_at


def test_steps_are_bounded_when_many_jobs_are_due(pair, monkeypatch):
    monkeypatch.setattr(maintain, "BATCH", 3)
    monkeypatch.setattr(maintenance, "BATCH", 3)
    for _ in range(4):
        make_job(state="scheduled", run_at=timezone.now())

    assert pair[0].run_once() == 0.0
    pair[0].run_once()

    assert maintain.promote("default") == 0


def test_all_lead_in_turn_when_a_pooler_gives_sessions_to_others():
    with override_settings(TENANTQUEUE={"POOLER": True}):
        made = [Maintenance(Lease("default", "test")) for _ in range(2)]
        for maintenance in made:
            due = make_job(state="scheduled", run_at=timezone.now())
            maintenance.run_once()
            assert state_of(due.pk) == "ready"


def test_another_stands_by_when_a_transaction_leads_behind_a_pooler(other):
    with override_settings(TENANTQUEUE={"POOLER": True}), other.transaction():
        other.execute(f"SELECT pg_advisory_xact_lock({KEY})", [LockKey.MAINTENANCE])
        due = make_job(state="scheduled", run_at=timezone.now())

        assert Maintenance(Lease("default", "test")).run_once() == PROBE_SECONDS
        assert state_of(due.pk) == "scheduled"
