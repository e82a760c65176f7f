"""Idle workers start on new jobs at once, with notifications and without."""

import signal
import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction

from django_tenantqueue.models import Job, Worker
from django_tenantqueue.operations.rescue import SETTLE_SECONDS
from django_tenantqueue.states import State
from django_tenantqueue.worker.child.sleep import SLEEP_SECONDS
from tests.testapp.tasks import noop
from tests.timing import assert_within

from .tasks import hold
from .workers import (
    Gate,
    Workers,
    make_queue,
    wait_for_end,
    wait_for_state,
    wait_until,
    wait_until_asleep,
)


def server_age() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())")
        return float(cursor.fetchone()[0])


def seconds_to_claim(job: Job) -> float:
    """Wait for the end of the job; return how long it waited."""
    wait_for_end([job.pk])
    return (job.refresh().queued_at - job.created_at).total_seconds()


def test_a_sleeping_worker_starts_at_once_when_a_job_is_enqueued(workers: Workers):
    runner = workers.start()
    for _ in range(3):
        wait_until_asleep(runner)

        assert_within(2.0, seconds_to_claim(noop.delay()))  # it would sleep for 10 s


@pytest.mark.heavy
def test_a_worker_starts_at_once_when_nothing_has_come_for_longer_than_one_sleep(workers: Workers):
    runner = workers.start()
    wait_until_asleep(runner)
    time.sleep(1.5 * SLEEP_SECONDS)

    assert_within(2.0, seconds_to_claim(noop.delay()))


def test_a_sleeping_worker_is_woken_when_the_transaction_commits(workers: Workers):
    runner = workers.start()
    wait_until_asleep(runner)

    with transaction.atomic():
        job = noop.delay()
        ids = noop.using(tenant="acme").enqueue_many([()] * 3)

    assert_within(2.0, seconds_to_claim(job))
    wait_for_end(ids, timeout=5)


@pytest.mark.heavy
@pytest.mark.parametrize("in_bulk", [False, True], ids=["one by one", "bulk"])
def test_enough_workers_are_woken_when_many_jobs_are_enqueued(
    workers: Workers, gate: Gate, in_bulk: bool
):
    make_queue("acme", num_slots=100)
    runners = [workers.start("--threads=1", processes=2) for _ in range(2)]
    wait_until_asleep(*runners)
    bound = hold.using(tenant="acme")

    if in_bulk:
        ids = bound.enqueue_many([(str(gate),)] * 4)
    else:
        with transaction.atomic():
            ids = [bound.delay(str(gate)).pk for _ in range(4)]
    running = Job.objects.active().filter(pk__in=ids)

    wait_until(lambda: running.count() == 4, timeout=5)
    assert len(set(running.values_list("worker", flat=True))) == 4


def test_a_worker_with_filters_is_woken_only_when_the_job_is_for_it(workers: Workers):
    reports = workers.start("--queues=reports")
    mail = workers.start("--queues=mail")
    wait_until_asleep(reports, mail)

    job = noop.using(queue="mail").delay()

    assert_within(2.0, seconds_to_claim(job))
    assert job.worker_id == mail.rows()[0].pk
    assert reports.rows()[0].sleeping_until is not None


@pytest.mark.parametrize("settings", [{"NOTIFY": False}, {"POOLER": True}], ids=["off", "pooler"])
def test_a_worker_finds_jobs_when_it_only_polls(workers: Workers, settings: dict[str, bool]):
    runner = workers.start(settings={**settings, "POLL_INTERVAL": 0.2})
    wait_for_end([noop.delay().pk])

    assert_within(2.0, seconds_to_claim(noop.delay()))
    assert [row.sleeping_until for row in runner.rows()] == [None]


def test_a_sleeping_worker_starts_when_a_scheduled_job_is_due(workers: Workers):
    runner = workers.start()
    wait_until_asleep(runner)

    job = noop.using(run_at=timedelta(seconds=0.5)).delay()
    wait_for_state(job, State.SUCCESS)

    assert job.queued_at >= job.run_at
    assert_within(2.0, job.queued_at - job.run_at)


def test_a_living_worker_is_woken_when_the_sleeper_that_was_notified_is_dead(workers: Workers):
    wait_until(lambda: server_age() > SETTLE_SECONDS)  # before, nobody is taken for dead
    killed, living = workers.start(), workers.start()
    wait_until_asleep(killed, living)
    killed.send_all(signal.SIGKILL)
    killed.end()
    made: list[Job] = []

    def enqueue() -> None:
        made.append(noop.delay())
        connection.close()

    with transaction.atomic():
        # who enqueues passes over the row of the living one, and notifies the dead one
        Worker.objects.select_for_update().get(pk=living.rows()[0].pk)
        thread = threading.Thread(target=enqueue)
        thread.start()
        thread.join()
    assert [row.sleeping_until for row in killed.rows()] == [None]

    # as soon as it is taken for dead, not when the sleep of the living one ends
    assert_within(9.0, seconds_to_claim(made[0]))
