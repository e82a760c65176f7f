"""A worker that falls asleep, sleeps and is woken loses no job, however the two sides cross."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from django_tenantqueue.models import Job, Worker
from django_tenantqueue.operations import enqueue
from django_tenantqueue.operations.places import BLOCKED_SECONDS
from django_tenantqueue.queries import workers as queries
from django_tenantqueue.queries.enqueue import wake_any_workers, wake_workers
from django_tenantqueue.worker.child import next_claim
from django_tenantqueue.worker.child import sleep as sleeping
from django_tenantqueue.worker.child.sleep import Sleep
from django_tenantqueue.worker.waiting import wait_readable
from tests.concurrency.loops import FakeLoop, turned_loop
from tests.factories import make_job, make_queue
from tests.testapp.tasks import noop
from tests.timing import assert_within


@pytest.fixture
def loop():
    with turned_loop() as made:
        yield made


# Each side stopped at every step. The sleeper: announce, claim once more, sleep. The enqueuer:
# commit the job, look for sleepers.


def test_job_is_claimed_when_it_was_enqueued_before_the_sleep_was_announced(worker):
    assert worker.claim() == []
    job = noop.using(tenant="acme").delay()
    queries.sleep_worker(worker.db, worker.id, 60.0)

    assert [claimed.id for claimed in worker.claim()] == [job.pk]


def test_sleeper_is_woken_when_it_fell_asleep_between_the_commit_and_the_look(make_sleeper):
    with transaction.atomic():
        noop.using(tenant="acme").delay()
        sleeper = make_sleeper()  # it claims once more, and does not see the job yet

    assert sleeper.was_notified()


def test_sleeper_is_woken_when_the_job_comes_after_its_last_claim(worker):
    queries.listen(worker.db, worker.id)
    queries.sleep_worker(worker.db, worker.id, 60.0)
    assert worker.claim() == []

    noop.using(tenant="acme").delay()

    (notification,) = worker.db.notifies(timeout=10, stop_after=1)
    assert notification.channel.endswith(f"_{worker.id}")
    assert len(worker.claim()) == 1


def test_worker_of_another_schema_is_not_woken_when_it_has_the_same_id(worker, open_connection):
    other = open_connection()
    with other.transaction():  # undone at the end
        other.execute("CREATE SCHEMA other")
        other.execute("CREATE TABLE other.tenantqueue_worker ()")
        other.execute("SET LOCAL search_path = other")
        queries.listen(other, worker.id)
        other.execute("DROP SCHEMA other CASCADE")
    queries.listen(worker.db, worker.id)
    queries.sleep_worker(worker.db, worker.id, 60.0)

    noop.using(tenant="acme").delay()

    assert list(worker.db.notifies(timeout=10, stop_after=1))
    other.execute("SELECT")
    assert not list(other.notifies(timeout=0))


def test_sleepers_are_looked_for_again_when_the_insert_took_long(make_sleeper, monkeypatch):
    """Its snapshot may be older than an announcement after which the worker looked for the job."""
    noop.using(tenant="acme").delay()
    insert = enqueue.queries.insert_job
    asleep = []

    def slow_insert(*args, **options):
        inserted = insert(*args, **options)
        asleep.append(make_sleeper())
        monkeypatch.setattr(enqueue, "QUICK_SECONDS", 0.0)
        return inserted

    monkeypatch.setattr(enqueue.queries, "insert_job", slow_insert)
    noop.using(tenant="acme").delay()

    assert asleep[0].was_notified()


def test_worker_looks_once_more_when_a_quick_insert_may_have_missed_it(worker, monkeypatch):
    assert sleeping.SETTLE_SECONDS > enqueue.QUICK_SECONDS
    sleep = Sleep(worker.id, worker.claimer.surveys)
    now = time.monotonic()
    for pause in sleeping.QUICK_LOOKS:
        assert sleep.next_look(worker.db, now) == pause
    assert sleep.next_look(worker.db, now) == 0.0
    assert Worker.objects.get(pk=worker.id).sleeping_until is not None

    look_in = sleep.next_look(worker.db, now)

    assert look_in > sleeping.SETTLE_SECONDS  # it counts from the end of the announcement
    assert sleep.next_look(worker.db, now + look_in + 0.001) is None


@pytest.mark.parametrize("is_new", [False, True], ids=["same connection", "new connection"])
def test_announcement_ends_when_the_last_claim_found_work(worker, is_new):
    """Else somebody would notify this worker, which does not listen, not one that sleeps."""
    sleep = Sleep(worker.id, worker.claimer.surveys)
    for _ in range(len(sleeping.QUICK_LOOKS) + 1):
        sleep.next_look(worker.db, 1000.0)
    if is_new:
        sleep.reconnected()

    sleep.found_work(worker.db)

    assert Worker.objects.get(pk=worker.id).sleeping_until is None


def test_waking_leaves_the_transaction_durable_when_it_is_the_callers(make_sleeper):
    sleepers = [make_sleeper() for _ in range(2)]

    with transaction.atomic(), connection.cursor() as cursor:
        assert wake_workers("default", {("", "default"): 1}) == 1
        assert wake_any_workers("default", most=1) == 1
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)

    assert all(sleeper.was_notified() for sleeper in sleepers)


def test_sleep_that_an_enqueuer_has_ended_is_not_renewed(make_sleeper):
    """The row would say that it sleeps while it works, and others would sleep on in its place."""
    sleeper = make_sleeper()
    assert queries.sleep_worker(sleeper.db, sleeper.id, 90.0, renew=True)
    assert sleeper.is_announced

    noop.using(tenant="acme").delay()

    assert not queries.sleep_worker(sleeper.db, sleeper.id, 90.0, renew=True)
    assert not sleeper.is_announced
    assert sleeper.was_notified()


def test_burst_worker_announces_no_sleep_when_it_is_idle(worker):
    sleep = Sleep(worker.id, worker.claimer.surveys, until_empty=True)

    assert [sleep.next_look(worker.db, 1000.0) for _ in range(5)][-1] is None
    assert Worker.objects.get(pk=worker.id).sleeping_until is None


def test_loop_looks_at_once_when_it_is_notified_behind_a_statement_after_the_claim(
    loop: FakeLoop, monkeypatch
):
    loop.turn_until_asleep()

    def next_look(*_, **__):
        loop.claim_loop.notified()

    monkeypatch.setattr(loop.claim_loop.next_claim.sleep, "next_look", next_look)
    loop.claim_loop.next_claim.hurry()
    loop.claim_loop.run_once()

    assert loop.claim_loop.next_claim.due_at <= time.monotonic()


def test_loop_hears_a_notification_that_was_read_behind_an_answer(loop: FakeLoop):
    """It lies in libpq's buffer then, and nothing more comes from the socket."""
    loop.turn_until_asleep()
    raw = loop.claim_loop.connection.pgconn
    job = noop.using(tenant="acme").delay()
    assert wait_readable([raw.socket], 10.0)
    raw.consume_input()
    assert not wait_readable([raw.socket], 0.0)

    began = time.monotonic()
    loop.claim_loop.wait(4.0)
    waited = time.monotonic() - began
    loop.turn_until(lambda: loop.executor.jobs)

    assert_within(2.0, waited)
    assert [running.id for running in loop.executor.jobs] == [job.pk]


def test_loop_takes_a_job_when_it_is_enqueued_while_it_sleeps(loop: FakeLoop):
    loop.turn_until_asleep()
    assert Worker.objects.get(pk=loop.id).sleeping_until is not None

    job = noop.using(tenant="acme").delay()
    loop.turn_until(lambda: loop.executor.jobs)

    assert [running.id for running in loop.executor.jobs] == [job.pk]


def test_loop_takes_every_job_when_enqueues_and_sleeps_cross(loop: FakeLoop, threads):
    made: list[int] = []

    def enqueue_some():
        for number in range(60):
            with transaction.atomic(savepoint=number % 2 == 0):
                made.append(noop.using(tenant=f"tenant-{number}").delay().pk)
        for number in range(60):
            made.append(noop.using(tenant=f"tenant-{number}").delay().pk)

    def taken() -> bool:
        for running in list(loop.executor.jobs):
            loop.end(running)
        return enqueuer.done() and Job.objects.finished().count() == 120

    enqueuer = threads.start(enqueue_some)
    loop.turn_until(taken, seconds=60)

    assert sorted(made) == sorted(Job.objects.values_list("pk", flat=True))


def test_loop_takes_the_jobs_of_a_locked_queue_when_the_lock_ends(loop: FakeLoop, open_connection):
    job = make_job()
    operator = open_connection()
    with operator.transaction():
        operator.execute(
            "SELECT FROM tenantqueue_tenantqueue WHERE id = %s FOR UPDATE", [job.queue_id]
        )
        for _ in range(20):
            pause = loop.claim_loop.run_once()
            assert pause <= BLOCKED_SECONDS, "it would sleep on a contended queue"
        assert not loop.executor.jobs

    loop.turn_until(lambda: loop.executor.jobs)
    assert Worker.objects.get(pk=loop.id).sleeping_until is None


def test_free_worker_gets_the_job_when_the_one_that_was_woken_is_full():
    with turned_loop(threads=1) as full, turned_loop(threads=1) as free:
        noop.using(tenant="a").delay()
        full.take(1)
        full.turn_until(lambda: is_announced(full))  # its only thread is taken
        free.turn_until_asleep()
        Worker.objects.filter(pk=free.id).update(sleeping_until=None)
        noop.using(tenant="a").delay()  # wakes the only one that is announced
        Worker.objects.filter(pk=free.id).update(
            sleeping_until=timezone.now() + timedelta(seconds=10)
        )

        full.turn_until(lambda: not Worker.objects.get(pk=free.id).sleeping_until)
        free.take(1)


def test_worker_that_was_woken_for_nothing_announces_no_sleep_for_a_while(monkeypatch):
    with turned_loop(threads=1) as full:
        noop.using(tenant="a").delay()
        full.take(1)
        full.turn_until(lambda: is_announced(full))
        monkeypatch.setattr(next_claim, "SEARCH_SECONDS", 30.0)
        noop.using(tenant="a").delay()

        full.turn_until(lambda: full.claim_loop.next_claim.due_at > time.monotonic() + 10)

        for _ in range(20):
            full.claim_loop.wait(min(0.02, full.claim_loop.run_once()))
        assert not is_announced(full)


def test_sleepers_are_woken_when_jobs_are_given_back(loop: FakeLoop, make_sleeper):
    for number in range(2):
        make_job(make_queue(f"tenant {number}"))
    jobs = loop.take(2)
    sleepers = [make_sleeper(), make_sleeper()]
    loop.claim_loop.claimed_jobs.draining = True  # which wakes one of them
    for running in jobs:
        loop.claim_loop.claimed_jobs.to_return(running, 0.0)

    loop.turn_until(lambda: not loop.claim_loop.claimed_jobs.to_give_back)

    assert all(sleeper.was_notified() for sleeper in sleepers)


def is_announced(loop: FakeLoop) -> bool:
    return Worker.objects.get(pk=loop.id).sleeping_until is not None
