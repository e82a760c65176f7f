"""A worker's claim loop while a snapshot is held: it surveys, sleeps and wakes, and misses
nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

import psycopg
import pytest
from django.db import connection

from django_tenantqueue.models import Job
from django_tenantqueue.operations import surveys
from django_tenantqueue.queries import workers
from tests.concurrency.held import come_and_go
from tests.concurrency.loops import FakeLoop, turned_loop
from tests.factories import cap_task, make_job, make_jobs, make_queue, state_of
from tests.testapp.tasks import noop


@pytest.fixture
def rare_surveys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no further survey come by itself."""
    for name in ("LEAST_SURVEY_SECONDS", "MOST_SURVEY_SECONDS"):
        monkeypatch.setattr(surveys, name, 60.0)


def survey_anew(turned: FakeLoop) -> None:
    """Survey; ids that are known by then are not looked at any more."""
    turned.claim_loop.claimer.surveys.leave()
    turned.claim_loop.claimer.surveys.run_once(turned.claim_loop.connection)
    assert turned.claim_loop.claimer.surveys.is_active


def test_loop_begins_to_survey_by_itself_and_ends_when_all_is_cleaned_up(snapshot, caplog):
    caplog.set_level(logging.INFO, "django_tenantqueue")
    queue = make_queue(num_slots=8)
    come_and_go(queue)
    with turned_loop() as turned:
        memory = turned.claim_loop.claimer.surveys
        turned.turn_until(lambda: memory.is_active)
        make_jobs(queue, 3)
        for running in turned.take(3):
            turned.end(running)

        snapshot.execute("ROLLBACK")
        connection.cursor().execute("VACUUM tenantqueue_job_hot")
        make_jobs(queue, 3)
        turned.claim_loop.notified()
        turned.turn_until(lambda: not memory.is_active)
        turned.take(3)

    said = [record.message for record in caplog.records if "claims" in record.message]
    assert len(said) == 2
    assert said[0].startswith("an open transaction prevents vacuum")
    assert said[1] == "vacuum works again: claims search all ids"


@pytest.fixture
def late() -> Callable[[], int]:
    """Return a function that makes ready what lies behind all that a survey has seen."""
    held = make_job(make_queue(), state="held").pk

    def release() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE tenantqueue_job_hot SET state = 'ready', held_by = NULL WHERE id = %s",
                [held],
            )
        return held

    return release


def test_job_that_becomes_ready_out_of_order_is_found_by_a_survey(late, snapshot):
    come_and_go(make_queue())
    with turned_loop() as turned:
        turned.turn_until(lambda: turned.claim_loop.claimer.surveys.is_active)
        job_id = late()

        (running,) = turned.take(1)

        assert running.id == job_id
        assert turned.claim_loop.claimer.surveys.is_active


def test_worker_surveys_between_the_announcement_of_its_sleep_and_the_sleep(
    late, snapshot, monkeypatch, rare_surveys
):
    """Who made the job ready saw no sleeper, and so has woken nobody."""
    come_and_go(make_queue())
    with turned_loop() as turned:
        memory, sleep = turned.claim_loop.claimer.surveys, turned.claim_loop.next_claim.sleep
        turned.turn_until(lambda: memory.is_active)
        survey_anew(turned)
        memory.run_once(turned.claim_loop.connection)
        announce = sleep._announce

        def release_and_announce(*args):
            late()
            announce(*args)

        monkeypatch.setattr(sleep, "_announce", release_and_announce)
        turned.turn_until(lambda: turned.executor.jobs)


def test_worker_that_could_sleep_often_announces_it_rarely(snapshot, monkeypatch):
    queue = make_queue(num_slots=8)
    come_and_go(queue)
    with turned_loop() as turned:
        turned.turn_until(lambda: turned.claim_loop.claimer.surveys.is_active)
        turned.turn_until_asleep()
        announced = []
        announce = workers.sleep_worker
        monkeypatch.setattr(
            workers,
            "sleep_worker",
            lambda *args, **more: announced.append(args) or announce(*args, **more),
        )
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            make_jobs(queue, 1)
            turned.claim_loop.notified()
            turned.turn_until(lambda: turned.executor.jobs)
            turned.end(turned.executor.jobs[0])
            turned.turn_until(
                lambda: (
                    not len(turned.claim_loop.claimed_jobs)
                    and turned.claim_loop.completions.is_empty
                )
            )
            for _ in range(6):
                turned.claim_loop.wait(min(0.003, turned.claim_loop.run_once()))

        assert len(announced) <= 1


def test_ends_are_stored_and_jobs_claimed_when_a_survey_fails(snapshot, monkeypatch):
    queue = make_queue(num_slots=8)
    come_and_go(queue)

    def fail(*_args: object, **_options: object) -> None:
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    monkeypatch.setattr(surveys, "survey_ready", fail)
    ids = make_jobs(queue, 3)
    with turned_loop(threads=1) as turned:
        for job_id in ids:
            (running,) = turned.take(1)
            assert running.id == job_id
            turned.end(running)
        turned.turn_until(lambda: state_of(ids[-1]) == "success")


def check_that_each_is_found(jobs: Sequence[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run jobs of which each becomes ready when the one before has ended, without a survey."""
    come_and_go(make_queue())
    with turned_loop() as turned:
        turned.turn_until(lambda: turned.executor.jobs)
        survey_anew(turned)
        monkeypatch.setattr(turned.claim_loop, "_survey", lambda: None)

        for job in jobs:
            (running,) = turned.take(1)
            assert running.id == job.id
            turned.end(running, gates=running._claimed.gates)

        assert turned.claim_loop.claimer.surveys.is_active


def test_next_job_of_a_session_is_found_without_a_survey(snapshot, monkeypatch, rare_surveys):
    """It was enqueued long ago, and becomes ready behind all that the survey has seen."""
    jobs = [noop.using(session="one", tenant="acme").delay() for _ in range(4)]

    check_that_each_is_found(jobs, monkeypatch)


def test_next_job_of_a_capped_task_is_found_without_a_survey(snapshot, monkeypatch, rare_surveys):
    cap_task(noop.name, 1)
    jobs = [noop.using(tenant="acme").delay() for _ in range(3)]

    check_that_each_is_found(jobs, monkeypatch)


def test_worker_that_connects_anew_forgets_the_surveys(snapshot, open_connection):
    """It may have come to another server, with another clock and another sequence."""
    come_and_go(make_queue())
    with turned_loop() as turned:
        memory = turned.claim_loop.claimer.surveys
        turned.turn_until(lambda: memory.is_active)
        snapshot.execute("ROLLBACK")
        connection.cursor().execute("VACUUM tenantqueue_job_hot")
        pid = turned.claim_loop.connection.info.backend_pid

        connection.cursor().execute("SELECT pg_terminate_backend(%s)", [pid])
        make_jobs(make_queue(), 1)
        turned.turn_until(lambda: turned.claim_loop.connection.info.backend_pid != pid)

        assert not memory.is_active
        turned.take(1)


def test_burst_does_not_end_before_it_has_looked_everywhere(late, snapshot, rare_surveys):
    come_and_go(make_queue())
    with turned_loop(until_empty=True) as turned:
        survey_anew(turned)
        late()

        turned.turn_until(lambda: turned.executor.jobs or turned.claim_loop.next_claim.idle_rounds)

        assert turned.executor.jobs
