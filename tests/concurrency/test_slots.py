"""Guarantee 1: no claim is made while a queue's slots are taken."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import datetime

import psycopg
import pytest
from django.db import connection

from django_tenantqueue.models import Job
from django_tenantqueue.operations import control
from django_tenantqueue.operations.claim import Verdict
from django_tenantqueue.worker.connection import connect
from tests.factories import make_job, make_jobs, make_queue, state_of
from tests.intervals import most_at_once
from tests.process.workers import clock

pytestmark = pytest.mark.usefixtures("manner")


def test_no_more_than_the_slots_are_taken_when_one_claim_has_room_for_all(worker):
    queue = make_queue(num_slots=3)
    make_jobs(queue, 10)

    assert len(worker.claim(10)) == 3
    assert worker.claim(10) == []


def test_slots_are_shared_by_all_priorities_when_a_claim_meets_a_queue_under_several(worker):
    queue = make_queue(num_slots=3)
    for priority in (100, 200, 300):
        make_jobs(queue, 2, priority=priority)

    assert [job.lane for job in worker.claim(10)] == [100, 100, 200]


def test_queue_counts_as_contended_when_another_claim_of_it_is_open(worker_factory):
    queue = make_queue(num_slots=3)
    make_jobs(queue, 10)
    first, second = worker_factory(), worker_factory()

    with first.open_claim(2) as taken:
        assert second.claim(10) == []
        assert len(second.look.contended) == 1
        assert second.verdict is Verdict.CONTENDED
        assert second.claimer.wait_seconds <= 0.02

    assert len(taken) == 2
    assert len(second.claim(10)) == 1


def test_other_queues_are_served_when_one_is_contended(worker_factory):
    held, free = make_queue(num_slots=1), make_queue(num_slots=1)
    make_jobs(held, 1, priority=100)
    make_jobs(free, 1, priority=200)
    first, second = worker_factory(), worker_factory()

    with first.open_claim(1) as taken:
        assert [job.queue_id for job in second.claim(1)] == [free.pk]

    assert [job.queue_id for job in taken] == [held.pk]


def test_slot_counts_when_it_was_taken_after_the_queue_was_chosen(worker):
    queue = make_queue(num_slots=2)
    make_jobs(queue, 5)

    with worker.db.transaction():
        worker.lock_queues()
        make_job(queue, state="running")
        taken = worker.take()

    assert len(taken) == 1


def test_queue_gives_nothing_when_it_was_paused_after_it_was_chosen(worker, open_connection):
    queue = make_queue(num_slots=2)
    make_jobs(queue, 5)

    with worker.db.transaction():
        worker.lock_queues()
        with pytest.raises(psycopg.errors.LockNotAvailable):
            open_connection().execute("UPDATE tenantqueue_tenantqueue SET paused = true")
        taken = worker.take()
    worker.finish(taken)
    control.pause([queue.pk])

    assert len(taken) == 2
    assert worker.claim() == []


def test_claim_is_read_committed_when_the_project_asks_for_more(worker):
    """In one snapshot for both of its statements it would count too few slots."""
    make_jobs(make_queue(num_slots=2), 3)
    told: list[str] = []
    worker.db.close()
    worker.db = connect("default", "test", options="-c default_transaction_isolation=serializable")
    worker.db.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION tell_isolation() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE NOTICE '%', current_setting('transaction_isolation'); RETURN NEW; END$$"
        )
        cursor.execute(
            "CREATE TRIGGER tell BEFORE UPDATE ON tenantqueue_job_hot "
            "FOR EACH ROW EXECUTE FUNCTION tell_isolation()"
        )
        try:
            worker.claim()
        finally:
            cursor.execute("DROP FUNCTION tell_isolation CASCADE")

    assert told == ["read committed"] * 2


@pytest.mark.parametrize("state", ["queued", "running"])
def test_job_holds_its_slot_when_it_is_queued_or_running(worker, state):
    queue = make_queue(num_slots=1)
    make_job(queue, state=state)
    make_jobs(queue, 1)

    assert worker.claim() == []


@pytest.mark.parametrize("state", ["scheduled", "held", "success", "error", "cancelled"])
def test_job_holds_no_slot_when_it_waits_or_has_ended(worker, state):
    queue = make_queue(num_slots=1)
    make_job(queue, state=state)
    ready = make_job(queue)

    assert [job.id for job in worker.claim()] == [ready.pk]


def test_running_jobs_end_first_when_slots_are_lowered(worker):
    queue = make_queue(num_slots=3)
    make_jobs(queue, 10)
    held = worker.claim()
    control.tune_queue(queue.pk, num_slots=1)

    assert [state_of(job.id) for job in held] == ["queued"] * 3
    for _ in range(2):
        worker.finish([held.pop()])
        assert worker.claim() == []
    worker.finish(held)
    assert len(worker.claim()) == 1


def test_next_claim_takes_more_when_slots_are_raised(worker):
    queue = make_queue(num_slots=1)
    make_jobs(queue, 10)
    worker.claim()
    control.tune_queue(queue.pk, num_slots=4)

    assert len(worker.claim()) == 3


def test_nothing_is_claimed_when_a_queue_has_no_slots(worker):
    make_jobs(make_queue(num_slots=0), 3)

    assert worker.claim() == []
    assert worker.verdict is Verdict.BLOCKED


def test_limits_hold_when_many_workers_race(worker_factory, threads):
    slots = {make_queue(num_slots=count).pk: count for count in (1, 2, 3, 3)}
    for queue_id in slots:
        make_jobs(queue_id, 150)
    held: Counter[int] = Counter()
    most: Counter[int] = Counter()
    lock = threading.Lock()

    def race(worker, room):
        idle = 0
        while idle < 3:
            jobs = worker.claim(room)
            with lock:  # the claim has committed: these slots are taken from before to after
                for job in jobs:
                    held[job.queue_id] += 1
                    most[job.queue_id] = max(most[job.queue_id], held[job.queue_id])
            idle = 0 if jobs or Job.objects.ready().exists() else idle + 1
            worker.claimer.places.forget_blocked()
            with lock:
                held.subtract(job.queue_id for job in jobs)
            worker.finish(jobs)

    running = [threads.start(race, worker_factory(), room) for room in (1, 1, 2, 2, 3, 5, 8, 20)]
    for thread in running:
        thread.result(60)

    assert {
        queue_id: most[queue_id] <= count for queue_id, count in slots.items()
    } == dict.fromkeys(slots, True)
    for queue_id, count in slots.items():
        rows = Job.objects.filter(queue_id=queue_id).values_list("queued_at", "finished_at")
        assert len(rows) == 150
        assert most_at_once(rows) <= count


@pytest.mark.heavy
def test_limit_in_force_holds_when_slots_change_while_workers_race(worker_factory, threads):
    queue = make_queue(num_slots=3)
    make_jobs(queue, 400)
    done = threading.Event()
    in_force: list[tuple[datetime, datetime, int]] = []

    def race(worker, room):
        while Job.objects.unfinished().exists():
            worker.finish(worker.claim(room))
            worker.claimer.places.forget_blocked()

    def tune():
        while not done.is_set():
            for count in (1, 3, 0, 2):
                control.tune_queue(queue.pk, num_slots=count)
                since = clock()
                Job.objects.active().count()
                in_force.append((since, clock(), count))

    tuner = threads.start(tune)
    running = [threads.start(race, worker_factory(), room) for room in (1, 2, 3, 5)]
    for thread in running:
        thread.result(60)
    done.set()
    tuner.result(60)

    rows = list(Job.objects.filter(queue=queue).values_list("queued_at", "finished_at"))
    assert len(rows) == 400
    assert most_at_once(rows) <= 3
    for since, until, count in in_force:
        for moment, _ in rows:
            if since <= moment < until:
                assert sum(start <= moment < end for start, end in rows) <= count
