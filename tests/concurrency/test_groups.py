"""Guarantee 9: what the database refuses of one job takes no other job with it."""

from __future__ import annotations

import json
import time

import psycopg
import pytest
from django.db import connection
from django.test import override_settings

from django_tenantqueue.exceptions import UnknownTask
from django_tenantqueue.execution.outcome import UNKNOWN_CLASS
from django_tenantqueue.models import Job, Worker
from django_tenantqueue.operations import control
from django_tenantqueue.queries import round_trip as queries
from tests.concurrency.loops import FakeLoop, turned_loop
from tests.factories import make_job, make_jobs, make_queue, state_of, states_of

BAD_JSON = {
    "NUL": '{"text": "a\\u0000b"}',
    "lone surrogate": '{"text": "\\ud800"}',
    "NaN": '{"number": NaN}',
    "no JSON": "{",
    "a raw NUL": '"\x00"',
}
each_bad_json = pytest.mark.parametrize("bad", BAD_JSON.values(), ids=BAD_JSON)


@pytest.fixture
def loop():
    with turned_loop(threads=100) as made:
        yield made


@each_bad_json
def test_neighbours_finish_once_when_one_result_of_a_hundred_is_refused(loop: FakeLoop, bad):
    ids = make_jobs(make_queue(num_slots=100), 100)
    jobs = loop.take(100)

    for number, running in enumerate(jobs):
        loop.end(running, result=bad if number == 41 else json.dumps(number))
    loop.turn_until(lambda: Job.objects.finished().count() == 100)

    finished = Job.objects.in_bulk(ids)
    refused = finished.pop(jobs[41].id)
    assert refused.state == "error"
    assert "PostgreSQL rejected" in refused.last_error["message"]
    assert len(finished) == 99
    assert {job.state for job in finished.values()} == {"success"}
    assert {job.attempt for job in finished.values()} == {1}
    assert [finished[running.id].result for running in jobs if running.id in finished] == [
        number for number in range(100) if number != 41
    ]


@each_bad_json
def test_neighbours_are_stored_when_one_error_is_refused(loop: FakeLoop, bad):
    make_jobs(make_queue(num_slots=100), 10)
    jobs = loop.take(10)

    for running in jobs[1:]:
        loop.fail(running, '{"error": {"message": "no"}}')
    loop.fail(jobs[0], f'{{"error": {{"message": "no"}}, "stats": {bad}}}')
    loop.turn_until(lambda: not Job.objects.active().exists())

    states = states_of(running.id for running in jobs)
    assert states.pop(jobs[0].id) == "error"
    assert set(states.values()) == {"scheduled"}


def test_neighbours_are_recorded_when_one_progress_is_refused(loop: FakeLoop):
    ids = make_jobs(make_queue(num_slots=100), 10)
    jobs = loop.take(10)
    for running in jobs:
        running._started -= 1.0
        running.progress(1, 2, "a\x00b" if running.id == ids[3] else "half")

    loop.turn_until(lambda: Job.objects.filter(progress_message="half").count() == 9)

    assert Job.objects.get(pk=ids[0]).state == "running"
    assert Job.objects.get(pk=ids[3]).progress_message is None
    assert Job.objects.get(pk=ids[3]).state == "running"


def test_progress_is_recorded_without_statistics_when_these_are_too_large(loop: FakeLoop):
    job_id = make_job().pk
    (running,) = loop.take(1)
    running._started -= 1.0
    running.progress(1, 2)
    running.stats["rows"] = "x" * 1_000_001

    loop.turn_until(lambda: Job.objects.get(pk=job_id).progress_done == 1)

    assert Job.objects.get(pk=job_id).stats is None


def test_neighbours_are_recorded_when_an_operator_holds_the_row_of_one(
    loop: FakeLoop, open_connection
):
    ids = make_jobs(make_queue(num_slots=100), 10)
    jobs = loop.take(10)
    operator = open_connection()

    with operator.transaction():
        operator.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [ids[3]])
        for running in jobs:
            running._started -= 1.0
            running.progress(1, 2, "half")
        loop.turn_until(lambda: Job.objects.filter(progress_message="half").count() == 9)
        loop.end(jobs[0])
        other = make_job()
        loop.turn_until(lambda: state_of(ids[0]) == "success")
        loop.turn_until(lambda: loop.executor.jobs[-1].id == other.pk)
        assert Job.objects.get(pk=ids[3]).started_at is None

    loop.turn_until(lambda: Job.objects.get(pk=ids[3]).progress_message == "half")


def test_starts_are_recorded_later_when_the_table_is_locked(loop: FakeLoop, open_connection):
    job_id = make_job().pk
    (running,) = loop.take(1)
    operator = open_connection()

    with operator.transaction():
        operator.execute("LOCK tenantqueue_job_hot IN SHARE MODE")
        running._started -= 1.0
        loop.claim_loop.running_jobs.run_once(loop.claim_loop.connection, time.monotonic() + 1.0)
        assert (running._recorded, running._dirty) == (False, True)

    loop.turn_until(lambda: state_of(job_id) == "running")


def test_worker_goes_on_when_an_operator_holds_its_row(loop: FakeLoop, open_connection):
    job_id = make_job().pk
    (running,) = loop.take(1)
    operator = open_connection()

    with operator.transaction():
        operator.execute("SELECT FROM tenantqueue_worker WHERE id = %s FOR UPDATE", [loop.id])
        loop.claim_loop.heartbeat.hurry()
        loop.end(running)
        loop.turn_until(lambda: state_of(job_id) == "success")

    loop.claim_loop.heartbeat.hurry()
    before = Worker.objects.get(pk=loop.id).heartbeat_at
    loop.turn_until(lambda: Worker.objects.get(pk=loop.id).heartbeat_at > before)


@pytest.fixture
def pooled_loop():
    with override_settings(TENANTQUEUE={"POOLER": True}), turned_loop() as made:
        yield made


@pytest.fixture
def operator(open_connection):
    """Return a connection that the server ends when a claim loop waits for it without a limit."""
    made = open_connection()
    made.execute("SET idle_in_transaction_session_timeout = '5s'")
    return made


def test_ends_are_stored_when_a_row_is_locked_behind_a_pooler(pooled_loop: FakeLoop, operator):
    ids = make_jobs(make_queue(num_slots=100), 5)
    jobs = pooled_loop.take(5)

    with operator.transaction():
        operator.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [ids[2]])
        for running in jobs:
            pooled_loop.end(running)
        pooled_loop.turn_until(lambda: Job.objects.finished().count() == 4)

    pooled_loop.turn_until(lambda: state_of(ids[2]) == "success")


def test_jobs_are_given_back_when_a_row_is_locked_behind_a_pooler(pooled_loop: FakeLoop, operator):
    ids = make_jobs(make_queue(num_slots=100), 3)
    jobs = pooled_loop.take(3)

    pooled_loop.claim_loop.claimed_jobs.draining = True
    with operator.transaction():
        operator.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [ids[1]])
        operator.execute(
            "SELECT FROM tenantqueue_worker WHERE id = %s FOR UPDATE", [pooled_loop.id]
        )
        pooled_loop.claim_loop.heartbeat.hurry()
        for running in jobs:
            pooled_loop.claim_loop.claimed_jobs.to_return(running, 0.0)
        pooled_loop.turn_until(lambda: list(states_of(ids).values()).count("ready") == 2)

    pooled_loop.turn_until(lambda: state_of(ids[1]) == "ready")


@pytest.fixture
def refusing_table():
    """Have the server refuse some ends, with an error that is not of their data."""
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE tenantqueue_job_hot ADD CONSTRAINT refusing "
            "CHECK (stats ->> 'refuse' IS NULL)"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenantqueue_job_hot DROP CONSTRAINT refusing")


def test_job_ends_in_error_when_the_server_refuses_its_end_for_good(loop: FakeLoop, refusing_table):
    ids = make_jobs(make_queue(num_slots=100), 3)
    jobs = loop.take(3)

    for running in jobs[1:]:
        loop.end(running)
    loop.fail(jobs[0], '{"error": {"message": "no"}, "stats": {"refuse": 1}}')
    loop.turn_until(lambda: Job.objects.finished().count() == 3)

    assert states_of(ids) == {ids[0]: "error", ids[1]: "success", ids[2]: "success"}
    assert "refusing" in Job.objects.get(pk=ids[0]).last_error["message"]


def test_end_is_tried_again_when_the_server_has_no_room(loop: FakeLoop, monkeypatch):
    job_id = make_job().pk
    (running,) = loop.take(1)
    exchange, refused = queries.exchange, []

    def refuse_twice(*args, finished=(), **options):
        if finished and len(refused) < 4:
            refused.append(finished)
            raise psycopg.errors.DiskFull("could not extend file")
        return exchange(*args, finished=finished, **options)

    monkeypatch.setattr(queries, "exchange", refuse_twice)
    loop.end(running)

    loop.turn_until(lambda: state_of(job_id) == "success")


def test_only_the_locked_job_waits_when_an_operator_holds_its_row(loop: FakeLoop, open_connection):
    ids = make_jobs(make_queue(num_slots=100), 20)
    jobs = loop.take(20)
    operator = open_connection()

    with operator.transaction():
        operator.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [ids[5]])
        for running in jobs:
            loop.end(running)
        loop.turn_until(lambda: Job.objects.finished().count() == 19)
        assert state_of(ids[5]) == "queued"
        other = make_job()
        loop.turn_until(lambda: [running.id for running in loop.executor.jobs] == [other.pk])

    loop.turn_until(lambda: state_of(ids[5]) == "success")


def test_reason_is_kept_when_a_job_is_given_back_of_an_unknown_task(
    loop: FakeLoop, open_connection
):
    job_id = make_job().pk
    (running,) = loop.take(1)
    operator = open_connection()

    with operator.transaction():
        operator.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [job_id])
        loop.give_back(running, UnknownTask("no such task"))
        loop.claim_loop.run_once()
        loop.claim_loop.run_once()
        assert state_of(job_id) == "queued"
    loop.turn_until(lambda: state_of(job_id) == "scheduled")

    (error,) = Job.objects.get(pk=job_id).errors or ()
    assert error["class"] == UNKNOWN_CLASS
    assert error["message"] == "no such task"
    assert not loop.claim_loop.claimed_jobs.reasons


def test_end_is_not_stored_when_the_claim_was_lost(loop: FakeLoop, caplog):
    queue = make_queue(num_slots=100)
    ids = make_jobs(queue, 3)
    jobs = loop.take(3)
    with_connection = loop.claim_loop.connection
    with_connection.execute(
        "UPDATE tenantqueue_job_hot SET claim_seq = claim_seq + 1 WHERE id = %s", [ids[1]]
    )

    for running in jobs:
        loop.end(running)
    loop.turn_until(lambda: Job.objects.finished().count() == 2)

    assert states_of(ids) == {ids[0]: "success", ids[1]: "queued", ids[2]: "success"}
    assert f"job {ids[1]}: the claim was lost" in caplog.text


def test_end_is_stored_when_the_connection_breaks_before_it(loop: FakeLoop, open_connection):
    make_jobs(make_queue(num_slots=100), 5)
    jobs = loop.take(5)
    backend = loop.claim_loop.connection.info.backend_pid

    open_connection().execute("SELECT pg_terminate_backend(%s)", [backend])
    for running in jobs:
        loop.end(running)
    loop.turn_until(lambda: Job.objects.finished().count() == 5)

    assert loop.claim_loop.connection.info.backend_pid != backend


def test_job_is_cancelled_when_it_has_not_begun(loop: FakeLoop):
    job_id = make_job().pk
    loop.executor.can_revoke = True
    loop.turn_until(lambda: loop.executor.jobs)
    assert control.cancel([job_id]) == ([], [job_id])

    loop.turn_until(lambda: state_of(job_id) == "cancelled")

    assert [running.id for running in loop.executor.revoked] == [job_id]


def test_job_is_given_back_when_its_queue_is_paused_before_it_began(loop: FakeLoop):
    job = make_job()
    loop.executor.can_revoke = True
    loop.turn_until(lambda: loop.executor.jobs)
    control.pause([job.queue_id])

    loop.turn_until(lambda: state_of(job.pk) == "ready")

    assert Job.objects.get(pk=job.pk).attempt == 0


def test_task_is_told_when_its_cancellation_was_requested(loop: FakeLoop):
    job_id = make_job().pk
    (running,) = loop.take(1)
    control.cancel([job_id])

    loop.turn_until(lambda: running.cancel_requested)

    with pytest.raises(Exception, match=f"cancellation of job {job_id}"):
        running.check()


def test_task_is_told_when_its_claim_is_lost(loop: FakeLoop):
    job_id = make_job().pk
    (running,) = loop.take(1)
    loop.claim_loop.connection.execute(
        "UPDATE tenantqueue_job_hot SET claim_seq = claim_seq + 1 WHERE id = %s", [job_id]
    )

    loop.turn_until(lambda: running.lost)

    with pytest.raises(Exception, match=f"job {job_id} was taken from this run"):
        running.check()


def test_idle_worker_tells_the_error_and_goes_on_when_its_connection_is_ended():
    with turned_loop() as loop:
        loop.turn_until_asleep()
        pid = loop.claim_loop.connection.info.backend_pid
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

        loop.turn_until(lambda: Worker.objects.get(pk=loop.id).last_error)

        assert loop.claim_loop.connection.info.backend_pid != pid
        make_job()
        loop.take(1)
