"""Sleeping and waking: nobody is notified in vain, and no wake-up is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue.models import Job, Worker
from django_tenantqueue.operations import control, enqueue, maintain
from django_tenantqueue.queries import enqueue as enqueue_queries
from django_tenantqueue.queries import workers as queries
from django_tenantqueue.queries.enqueue import wake_any_workers, wake_workers
from django_tenantqueue.worker import sleep as sleeping
from django_tenantqueue.worker.sleep import Sleep
from django_tenantqueue.worker.waiter import wait_readable
from tests.concurrency.pumps import FakePump, turned_pump
from tests.factories import make_job, make_queue, register_worker, state_of
from tests.testapp.tasks import noop
from tests.timing import assert_within


class Sleeper:
    """A worker that has announced its sleep and listens."""

    def __init__(self, db: psycopg.Connection[Any], *, asleep: bool = True, **filters: Any) -> None:
        self.db = db
        self.id = register_worker(db, **filters)
        queries.listen(db, self.id)
        db.execute("LISTEN sentinel")
        if asleep:
            queries.sleep_worker(db, self.id, 60.0)

    def was_notified(self) -> bool:
        """Say whether a notification for this worker came before one that is sent now."""
        self.db.execute("NOTIFY sentinel")
        for notification in self.db.notifies(timeout=10):
            if notification.channel != "sentinel":
                return True
            break
        return False

    @property
    def is_announced(self) -> bool:
        return Worker.objects.get(pk=self.id).sleeping_until is not None


@pytest.fixture
def make_sleeper(open_connection) -> Callable[..., Sleeper]:
    return lambda **options: Sleeper(open_connection(), **options)


@pytest.fixture
def pump():
    with turned_pump() as made:
        yield made


def test_nobody_is_notified_when_nobody_sleeps(make_sleeper):
    awake = make_sleeper(asleep=False)

    noop.using(tenant="acme").delay()
    with transaction.atomic():
        noop.using(tenant="acme").delay()

    assert not awake.was_notified()


def test_one_sleeper_is_woken_when_one_job_is_enqueued(make_sleeper):
    sleepers = [make_sleeper() for _ in range(3)]

    noop.using(tenant="acme").delay()

    (woken,) = [sleeper for sleeper in sleepers if sleeper.was_notified()]
    assert [sleeper.is_announced for sleeper in sleepers].count(True) == 2
    assert not woken.is_announced


def test_next_sleeper_is_woken_when_another_job_is_enqueued(make_sleeper):
    sleepers = [make_sleeper() for _ in range(3)]

    for _ in range(2):
        noop.using(tenant="acme").delay()

    assert [sleeper.was_notified() for sleeper in sleepers].count(True) == 2


def test_as_many_are_woken_as_there_are_jobs_when_they_are_enqueued_in_bulk(make_sleeper):
    sleepers = [make_sleeper() for _ in range(3)]

    noop.using(tenant="acme").enqueue_many([()] * 2)

    assert [sleeper.was_notified() for sleeper in sleepers].count(True) == 2


@pytest.mark.parametrize(
    "filters",
    [
        {"queues": ["mail"]},
        {"exclude_queues": ["reports"]},
        {"tenants": ["globex"]},
        {"queues": ["reports"], "tenants": ["globex"]},
    ],
    ids=str,
)
def test_sleeper_is_left_asleep_when_its_filters_leave_the_queue_out(make_sleeper, filters):
    left = make_sleeper(**filters)

    noop.using(tenant="acme", queue="reports").delay()

    assert not left.was_notified()
    assert left.is_announced


@pytest.mark.parametrize(
    "filters",
    [
        {"queues": ["mail", "reports"]},
        {"exclude_queues": ["mail"]},
        {"tenants": ["acme"]},
        {"queues": ["reports"], "exclude_queues": ["mail"], "tenants": ["acme", "globex"]},
    ],
    ids=str,
)
def test_sleeper_is_woken_when_its_filters_take_the_queue(make_sleeper, filters):
    others = [make_sleeper(queues=["mail"]) for _ in range(3)]
    taken = make_sleeper(**filters)

    noop.using(tenant="acme", queue="reports").delay()

    assert taken.was_notified()
    assert not any(other.was_notified() for other in others)


def test_sleeper_is_left_alone_when_its_sleep_is_over(make_sleeper):
    over = make_sleeper()
    Worker.objects.update(sleeping_until=timezone.now())

    noop.using(tenant="acme").delay()

    assert not over.was_notified()


def test_nobody_is_notified_inside_the_transaction_when_a_job_is_enqueued(
    make_sleeper, open_connection
):
    sleeper = make_sleeper()
    with transaction.atomic():
        noop.using(tenant="acme").delay()
        noop.using(tenant="acme").enqueue_many([()] * 2)

        row = open_connection().execute(
            "SELECT sleeping_until IS NOT NULL FROM tenantqueue_worker WHERE id = %s "
            "FOR UPDATE NOWAIT",
            [sleeper.id],
        )
        assert row.fetchone() == (True,)
        assert not sleeper.was_notified()

    assert sleeper.was_notified()


def test_nobody_is_notified_when_the_transaction_is_rolled_back(make_sleeper):
    sleeper = make_sleeper()
    with transaction.atomic():
        noop.using(tenant="acme").delay()
        transaction.set_rollback(True)

    assert not sleeper.was_notified()
    assert sleeper.is_announced


def test_wake_up_is_kept_when_only_a_savepoint_is_rolled_back(make_sleeper):
    sleeper = make_sleeper()
    with transaction.atomic():
        noop.using(tenant="acme").delay()
        with transaction.atomic():
            noop.using(tenant="acme").delay()
            transaction.set_rollback(True)

    assert sleeper.was_notified()
    assert Job.objects.count() == 1


def test_enqueue_succeeds_when_waking_fails(make_sleeper, monkeypatch):
    make_sleeper()

    def refuse(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(enqueue.queries, "wake_workers", refuse)
    with transaction.atomic():
        job = noop.using(tenant="acme").delay()

    assert state_of(job.pk) == "created"


def test_enqueuers_do_not_wait_when_a_sleepers_row_is_locked(
    make_sleeper, open_connection, threads
):
    locked, free = make_sleeper(), make_sleeper()
    other = open_connection()
    with other.transaction():
        other.execute("SELECT FROM tenantqueue_worker WHERE id = %s FOR UPDATE", [locked.id])

        threads.run(noop.using(tenant="acme").delay)

        assert free.was_notified()


def test_nobody_is_notified_when_workers_only_poll(make_sleeper):
    sleeper = make_sleeper()

    with override_settings(TENANTQUEUE={"NOTIFY": False}):
        noop.using(tenant="acme").delay()

    assert not sleeper.was_notified()


def test_sleeper_is_notified_when_the_site_alone_is_behind_a_pooler(make_sleeper):
    sleeper = make_sleeper()

    with override_settings(TENANTQUEUE={"POOLER": True}):
        noop.using(tenant="acme").delay()

    assert sleeper.was_notified()


@pytest.mark.parametrize(
    "change",
    [
        lambda: control.retry([make_job(state="error").pk]),
        lambda: control.run_now([make_job(state="scheduled").pk]),
        lambda: control.change_run_at([make_job(state="scheduled").pk], timezone.now()),
        lambda: control.resume([make_queue(paused=True).pk]),
        lambda: control.tune_queue(make_queue().pk, num_slots=9),
        lambda: (make_job(state="scheduled"), maintain.promote("default")),
        lambda: control.run_now([make_job(state="scheduled", session_key="/s", attempt=1).pk]),
    ],
    ids=["retry", "run_now", "change_run_at", "resume", "tune_queue", "promote", "session"],
)
def test_sleeper_is_woken_when_an_operator_or_the_clock_makes_work_ready(make_sleeper, change):
    sleeper = make_sleeper()

    change()

    assert sleeper.was_notified()


def test_sleeper_is_woken_for_its_queue_when_others_sleep_that_do_not_take_it(make_sleeper):
    others = [make_sleeper(queues=["light"]) for _ in range(2)]
    others += [make_sleeper(queues=["light", "heavy"], tenants=["globex"]) for _ in range(2)]
    wanted = make_sleeper(queues=["heavy"])
    make_job(make_queue("acme", "heavy"), state="scheduled")

    maintain.promote("default")

    assert wanted.was_notified()
    assert [other.is_announced for other in others].count(True) == 2  # one of each kind


def test_as_many_of_a_kind_are_woken_as_there_are_jobs(make_sleeper):
    sleepers = [make_sleeper(queues=["heavy"], exclude_queues=["light"]) for _ in range(3)]
    for _ in range(2):
        make_job(state="scheduled")

    maintain.promote("default")

    assert [sleeper.was_notified() for sleeper in sleepers].count(True) == 2


@pytest.mark.parametrize("filters", [{}, {"queues": ["default"]}], ids=["all", "some queues"])
@pytest.mark.parametrize(
    "wake",
    [
        lambda: noop.using(tenant="acme").delay(),
        lambda: wake_any_workers("default", most=1),
    ],
    ids=["enqueue", "any"],
)
def test_sleeper_is_woken_when_its_row_is_locked_for_a_moment(
    make_sleeper, open_connection, monkeypatch, wake, filters
):
    """By its own heartbeat, say."""
    sleeper, heart = make_sleeper(**filters), open_connection()
    heart.autocommit = False
    heart.execute("SELECT FROM tenantqueue_worker WHERE id = %s FOR UPDATE", [sleeper.id])
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            heart.rollback()

    monkeypatch.setattr(enqueue_queries, "time", SimpleNamespace(sleep=sleep))
    wake()

    assert sleeper.was_notified()
    assert len(pauses) == 2
    assert not sleeper.is_announced


def test_enqueuer_goes_on_soon_when_the_row_of_the_only_sleeper_stays_locked(
    make_sleeper, open_connection
):
    sleeper, operator = make_sleeper(), open_connection()
    operator.autocommit = False
    operator.execute("SELECT FROM tenantqueue_worker WHERE id = %s FOR UPDATE", [sleeper.id])

    began = time.monotonic()
    noop.using(tenant="acme").delay()

    assert_within(1.0, time.monotonic() - began)
    assert not sleeper.was_notified()


def test_somebody_is_woken_for_each_queue_when_one_transaction_fills_several(make_sleeper):
    mail = [make_sleeper(queues=["mail"]) for _ in range(3)]
    reports = make_sleeper(queues=["reports"])

    with transaction.atomic():
        noop.using(queue="mail").delay()
        noop.using(queue="reports").delay()

    assert reports.was_notified()
    assert 1 <= [sleeper.was_notified() for sleeper in mail].count(True) <= 2


def test_no_more_are_woken_than_there_are_jobs_when_all_take_everything(make_sleeper):
    sleepers = [make_sleeper() for _ in range(4)]

    with transaction.atomic():
        noop.using(queue="mail").delay()
        noop.using(queue="reports").delay()

    assert [sleeper.was_notified() for sleeper in sleepers].count(True) == 2


@pytest.mark.parametrize("why", ["filtered", "draining"])
def test_another_is_woken_when_a_session_goes_on_with_a_job_that_is_not_for_this_worker(
    make_sleeper, why
):
    first = noop.using(queue="mail", session="s").delay()
    noop.using(queue="mail" if why == "draining" else "reports", session="s").delay()
    with turned_pump(**({"queues": ["mail"]} if why == "filtered" else {})) as pump:
        (running,) = pump.take(1)
        assert running.id == first.pk
        pump.pump.draining = why == "draining"
        pump.pump.run_once()  # who begins to drain wakes somebody
        other = make_sleeper()

        pump.end(running, gates=running.claimed.gates)
        pump.turn_until(lambda: not other.is_announced)

    assert other.was_notified()


def test_asking_worker_is_left_out_when_it_wakes_another(make_sleeper):
    asking, other = make_sleeper(), make_sleeper()

    assert wake_any_workers(asking.db, most=5, worker_id=asking.id) == 1

    assert other.was_notified()
    assert not asking.was_notified()


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
    assert notification.channel == f"tenantqueue_{worker.id}"
    assert len(worker.claim()) == 1


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
    sleep = Sleep(worker.id)
    now = time.monotonic()
    for pause in sleeping.QUICK_LOOKS:
        assert sleep.next_look(worker.db, now) == pause
    assert sleep.next_look(worker.db, now) == 0.0
    assert Worker.objects.get(pk=worker.id).sleeping_until is not None

    look_in = sleep.next_look(worker.db, now)

    assert look_in > sleeping.SETTLE_SECONDS  # it counts from the end of the announcement
    assert sleep.next_look(worker.db, now + look_in + 0.001) is None


def test_announcement_ends_when_the_last_claim_found_work(worker):
    sleep = Sleep(worker.id)
    for _ in range(len(sleeping.QUICK_LOOKS) + 1):
        sleep.next_look(worker.db, 1000.0)

    sleep.found_work(worker.db)

    assert Worker.objects.get(pk=worker.id).sleeping_until is None


def test_announcement_of_before_ends_when_work_is_found_on_a_new_connection(worker):
    """Else somebody would notify this worker, which does not listen, not one that sleeps."""
    sleep = Sleep(worker.id)
    for _ in range(len(sleeping.QUICK_LOOKS) + 1):
        sleep.next_look(worker.db, 1000.0)
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
    sleep = Sleep(worker.id, burst=True)

    assert [sleep.next_look(worker.db, 1000.0) for _ in range(5)][-1] is None
    assert Worker.objects.get(pk=worker.id).sleeping_until is None


def test_pump_looks_at_once_when_it_is_notified_behind_a_statement_after_the_claim(
    pump: FakePump, monkeypatch
):
    pump.turn_until_asleep()

    def next_look(*_, **__):
        pump.pump.notified()

    monkeypatch.setattr(pump.pump.sleep, "next_look", next_look)
    pump.pump.timetable.hurry()
    pump.pump.run_once()

    assert pump.pump.timetable.due_at <= time.monotonic()


def test_pump_hears_a_notification_that_was_read_behind_an_answer(pump: FakePump):
    """It lies in libpq's buffer then, and nothing more comes from the socket."""
    pump.turn_until_asleep()
    raw = pump.pump.connection.pgconn
    job = noop.using(tenant="acme").delay()
    assert wait_readable([raw.socket], 10.0)
    raw.consume_input()
    assert not wait_readable([raw.socket], 0.0)

    began = time.monotonic()
    pump.pump.wait(4.0)
    waited = time.monotonic() - began
    pump.turn_until(lambda: pump.executor.jobs)

    assert_within(2.0, waited)
    assert [running.id for running in pump.executor.jobs] == [job.pk]


def test_pump_takes_a_job_when_it_is_enqueued_while_it_sleeps(pump: FakePump):
    pump.turn_until_asleep()
    assert Worker.objects.get(pk=pump.id).sleeping_until is not None

    job = noop.using(tenant="acme").delay()
    pump.turn_until(lambda: pump.executor.jobs)

    assert [running.id for running in pump.executor.jobs] == [job.pk]


def test_pump_takes_every_job_when_enqueues_and_sleeps_cross(pump: FakePump, threads):
    made: list[int] = []

    def enqueue_some():
        for number in range(60):
            with transaction.atomic(savepoint=number % 2 == 0):
                made.append(noop.using(tenant=f"tenant-{number}").delay().pk)
        for number in range(60):
            made.append(noop.using(tenant=f"tenant-{number}").delay().pk)

    def taken() -> bool:
        for running in list(pump.executor.jobs):
            pump.end(running)
        return enqueuer.done() and Job.objects.finished().count() == 120

    enqueuer = threads.start(enqueue_some)
    pump.turn_until(taken, seconds=60)

    assert sorted(made) == sorted(Job.objects.values_list("pk", flat=True))


def test_pump_takes_the_jobs_of_a_locked_queue_when_the_lock_ends(pump: FakePump, open_connection):
    job = make_job()
    operator = open_connection()
    with operator.transaction():
        operator.execute(
            "SELECT FROM tenantqueue_tenantqueue WHERE id = %s FOR UPDATE", [job.queue_id]
        )
        for _ in range(20):
            pause = pump.pump.run_once()
            assert pause <= 0.02, "it would sleep on a contended queue"
        assert not pump.executor.jobs

    pump.turn_until(lambda: pump.executor.jobs)
    assert Worker.objects.get(pk=pump.id).sleeping_until is None


def test_free_worker_gets_the_job_when_the_one_that_was_woken_is_full():
    with turned_pump(threads=1) as full, turned_pump(threads=1) as free:
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


def test_worker_that_was_woken_in_vain_announces_no_sleep_for_a_while(monkeypatch):
    monkeypatch.setattr("django_tenantqueue.worker.sleep.SILENT_SECONDS", 30.0)
    with turned_pump(threads=1) as full:
        noop.using(tenant="a").delay()
        full.take(1)
        full.turn_until(lambda: is_announced(full))
        noop.using(tenant="a").delay()

        full.turn_until(lambda: full.pump.sleep._silent_until > 0)

        for _ in range(20):
            full.pump.wait(min(0.02, full.pump.run_once()))
        assert not is_announced(full)


def test_sleepers_are_woken_when_jobs_are_given_back(pump: FakePump, make_sleeper):
    for number in range(2):
        make_job(make_queue(f"tenant {number}"))
    jobs = pump.take(2)
    sleepers = [make_sleeper(), make_sleeper()]
    pump.pump.draining = True  # which wakes one of them
    for running in jobs:
        pump.pump.flight.to_return(running, 0.0)

    pump.turn_until(lambda: not pump.pump.flight.returns)

    assert all(sleeper.was_notified() for sleeper in sleepers)


def is_announced(pump: FakePump) -> bool:
    """Whether this worker says that it sleeps."""
    return Worker.objects.get(pk=pump.id).sleeping_until is not None
