"""Many workers after the same queues: they wait at a turnstile, and share looks at full queues."""

from __future__ import annotations

import time

import psycopg
import pytest
from django.db import connection

from django_tenantqueue.execution.outcome import Outcome
from django_tenantqueue.models import TenantQueue, Worker
from django_tenantqueue.operations.claim import Verdict
from django_tenantqueue.operations.places import BLOCKED_SECONDS
from django_tenantqueue.queries import round_trip as round_trip_queries
from django_tenantqueue.queries.base import statement
from django_tenantqueue.queries.finish import Finished
from django_tenantqueue.queries.locks import LockKey
from django_tenantqueue.worker.child.next_claim import MOST_DETOURS, Turnstile
from django_tenantqueue.worker.child.sleep import SLEEP_SECONDS
from tests.concurrency.loops import FakeLoop, turned_loop
from tests.factories import FakeWorker, make_job, make_jobs, make_queue, make_worker
from tests.process.workers import wait_until
from tests.timing import TooLate, assert_within


def claim_in_line(worker: FakeWorker) -> list[int]:
    request = worker.claimer.request(1, 0)
    answer = round_trip_queries.exchange(worker.db, worker.id, request=request, at_turnstile=True)
    return [job.id for job in answer.jobs]


def stand_in_front(db: psycopg.Connection) -> None:
    db.execute(round_trip_queries.TURNSTILE_TIMEOUT)
    db.execute(statement("wait_at_turnstile"), {"key": LockKey.TURNSTILE})


def somebody_stands_in_line() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND "
            "database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        return cursor.fetchone()[0]


def test_claim_in_line_goes_on_when_the_one_before_it_is_done(worker, open_connection, threads):
    job = make_job()
    first = open_connection()
    with first.transaction():
        stand_in_front(first)
        second = threads.start(claim_in_line, worker)
        wait_until(somebody_stands_in_line)
        assert not second.done()

    assert second.result(5) == [job.pk]


def test_claim_without_the_line_waits_for_nobody(worker, open_connection):
    job = make_job()
    first = open_connection()
    with first.transaction():
        stand_in_front(first)

        assert [taken.id for taken in worker.claim(1)] == [job.pk]


def test_worker_in_line_sees_other_queues_when_its_turn_comes(worker, open_connection, threads):
    locked, other = make_queue("a"), make_queue("b")
    make_jobs(locked, 3)
    holder, first = open_connection(), open_connection()
    with holder.transaction():
        holder.execute("SELECT FROM tenantqueue_tenantqueue WHERE id = %s FOR UPDATE", [locked.pk])
        with first.transaction():
            stand_in_front(first)
            standing = threads.start(claim_in_line, worker)
            job = make_job(other)

        assert standing.result(5) == [job.pk]


def test_wait_in_line_ends_when_it_takes_too_long(worker, open_connection, monkeypatch):
    monkeypatch.setattr(round_trip_queries, "TURNSTILE_TIMEOUT", b"SET LOCAL lock_timeout = 50")
    job = make_job()
    first = open_connection()
    with first.transaction():
        stand_in_front(first)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            claim_in_line(worker)

    assert [taken.id for taken in worker.claim(1)] == [job.pk]


def test_loop_stands_in_line_when_its_claim_found_all_in_others_hands(open_connection):
    with turned_loop(threads=1) as loop:
        job = make_job()
        operator = open_connection()
        with operator.transaction():
            operator.execute(
                "SELECT FROM tenantqueue_tenantqueue WHERE id = %s FOR UPDATE", [job.queue_id]
            )
            loop.turn_until(lambda: loop.claim_loop.next_claim.turnstile.expected)
            with loop.claim_loop.connection.cursor() as cursor:
                sent = cursor.connection.info.backend_pid
            first = open_connection()
            first.execute("BEGIN")
            stand_in_front(first)
            assert sent != first.info.backend_pid
        began = time.monotonic()
        first.execute("SET LOCAL idle_in_transaction_session_timeout = 300")
        loop.take(1)  # when the one before it has gone

        assert time.monotonic() - began > 0.2


def test_worker_that_runs_something_does_not_stand_in_line(open_connection):
    with turned_loop(threads=2) as loop:
        make_job(make_queue("free"))
        loop.take(1)
        job = make_job(make_queue("locked"))
        operator = open_connection()
        with operator.transaction():
            operator.execute(
                "SELECT FROM tenantqueue_tenantqueue WHERE id = %s FOR UPDATE", [job.queue_id]
            )
            loop.turn_until(lambda: loop.claim_loop.next_claim.turnstile.expected)
        first = open_connection()
        with first.transaction():
            stand_in_front(first)

            loop.take(2)


def test_line_is_left_when_a_claim_finds_something():
    line = Turnstile()
    line.tried(Verdict.CONTENDED, found=False, beside_ends=False)
    assert line.expected
    line.waited(Verdict.AGAIN, 0.5)

    assert not line.expected
    assert line.rest_seconds == 0.0


def test_worker_stays_away_for_as_long_as_it_stood_in_vain():
    line = Turnstile()
    line.waited(Verdict.CONTENDED, 0.03)
    assert line.rest_seconds == 0.03
    line.waited(Verdict.CONTENDED, 60.0)
    assert line.rest_seconds == BLOCKED_SECONDS


def test_completions_do_without_a_claim_more_often_each_time_it_was_in_vain():
    line = Turnstile()
    detours = []
    for _ in range(7):
        line.tried(Verdict.CONTENDED, found=False, beside_ends=True)
        count = 0
        while line.is_crowded():
            assert line.expected
            count += 1
        detours.append(count)

    assert detours == [1, 2, 4, 8, 16, 16, 16]
    assert max(detours) == MOST_DETOURS


def test_nobody_stands_in_line_behind_a_pooler(settings):
    settings.TENANTQUEUE = {"POOLER": True}
    line = Turnstile()
    line.tried(Verdict.CONTENDED, found=False, beside_ends=True)

    assert not line.expected
    assert not line.is_crowded()


def full_queue() -> TenantQueue:
    queue = make_queue(num_slots=1)
    make_job(queue, state="running")
    make_jobs(queue, 5)
    return queue


def turn_until_resting(loop: FakeLoop) -> float:
    """Turn the claim loop until it sleeps and has looked at full queues; return the pause."""
    end = time.monotonic() + 8
    while True:
        pause = loop.claim_loop.run_once()
        if loop.claim_loop.next_claim.sleep._until and pause > 0.1:
            return pause
        if time.monotonic() >= end:
            raise TooLate("the claim loop does not come to rest")
        loop.claim_loop.wait(pause)


def test_sleeping_workers_share_the_looks_at_full_queues(make_sleeper):
    full_queue()
    with turned_loop() as alone:
        assert turn_until_resting(alone) <= BLOCKED_SECONDS
    for _ in range(7):
        make_sleeper()
    with turned_loop() as one_of_many:
        assert turn_until_resting(one_of_many) > 6 * BLOCKED_SECONDS * 0.75
        assert Worker.objects.get(pk=one_of_many.id).sleeping_until is not None


def test_looks_of_a_large_fleet_are_as_rare_as_those_without_blocked_jobs():
    full_queue()
    for _ in range(50):
        make_worker()
    with turned_loop() as one_of_many:
        turn_until_resting(one_of_many)
        pause = one_of_many.claim_loop.next_claim.due_at - time.monotonic()
        assert pause > SLEEP_SECONDS * 0.7


def looks_after_a_job(workers: int) -> int:
    """Return how often one of so many workers looks at full queues in 10 s after its last job."""
    with turned_loop() as loop:
        next_claim = loop.claim_loop.next_claim
        next_claim.sleep.workers = workers
        loop.claim_loop.claimer.wait_seconds = BLOCKED_SECONDS
        looks, idle = 0, 0.0
        while idle < 10.0:
            idle += next_claim._blocked_pause(next_claim._found_at + idle)
            looks += 1
    return looks


def test_looks_after_a_job_are_shared_by_the_fleet():
    """Else a fleet of 40 that ends 10 jobs a second looks some 160 times a second."""
    assert 12 < looks_after_a_job(4) < 30
    assert looks_after_a_job(40) < 7


def test_worker_that_made_the_last_start_of_a_rate_makes_the_next_one_in_time(make_sleeper):
    queue = make_queue(max_per_second=5.0, burst=1)
    make_jobs(queue, 5)
    for _ in range(15):
        make_sleeper()
    with turned_loop() as loop:
        loop.take(1)
        began = time.monotonic()
        loop.take(4)

        assert_within(2.0, time.monotonic() - began)


def test_raised_slots_reach_the_sleepers_when_the_first_to_look_has_no_more_room():
    queue = full_queue()
    with turned_loop(threads=1) as first, turned_loop(threads=1) as second:
        turn_until_resting(first)
        turn_until_resting(second)
        TenantQueue.objects.filter(pk=queue.pk).update(num_slots=3)

        began = time.monotonic()
        first.take(1)
        second.take(1)

        assert_within(1.0, time.monotonic() - began)


def test_next_job_is_taken_at_once_when_an_atomic_one_has_ended(open_connection, make_sleeper):
    first, second = make_jobs(make_queue(num_slots=1), 2)
    watcher = open_connection()
    for _ in range(15):
        make_sleeper()
    with turned_loop(threads=2) as loop:
        (running,) = loop.take(1)
        loop.turn_until(lambda: loop.claim_loop.next_claim.due_at > time.monotonic() + 1.0)

        ended = Finished(first, running._claimed.claim_seq, "success", 0.1)
        round_trip_queries.exchange(watcher, loop.id, finished=[ended])
        loop.executor.jobs.remove(running)
        loop.claim_loop.report(running, Outcome(stored=True))

        loop.turn_until(lambda: loop.executor.jobs, seconds=1.0)
        assert [running.id for running in loop.executor.jobs] == [second]
