"""Sleeping and waking: nobody is notified in vain, and no wake-up is lost."""

from __future__ import annotations

import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue.models import Job, Worker
from django_tenantqueue.operations import control, enqueue, maintain
from django_tenantqueue.queries import enqueue as enqueue_queries
from django_tenantqueue.queries.enqueue import wake_any_workers
from django_tenantqueue.worker.child.sleep import BUSY_SECONDS
from tests.concurrency.loops import turned_loop
from tests.factories import make_job, make_queue, state_of
from tests.testapp.tasks import noop
from tests.timing import assert_within


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


@pytest.mark.parametrize("in_bulk", [False, True])
def test_as_many_are_woken_as_there_are_jobs(make_sleeper, in_bulk):
    sleepers = [make_sleeper() for _ in range(3)]
    bound = noop.using(tenant="acme")

    if in_bulk:
        bound.enqueue_many([()] * 2)
    else:
        for _ in range(2):
            bound.delay()

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

    assert state_of(job.pk) == "ready"


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


def enqueue_to_two_queues() -> None:
    with transaction.atomic():
        for queue in ("mail", "reports"):
            noop.using(tenant="acme", queue=queue).delay()


@pytest.mark.parametrize(
    ("wake", "idle"),
    [
        (lambda: noop.using(tenant="acme").delay(), 1),
        (lambda: noop.using(tenant="acme").enqueue_many([()] * 2), 2),
        (enqueue_to_two_queues, 2),
        (lambda: wake_any_workers("default", most=1), 1),
    ],
    ids=["one job", "two jobs", "two queues", "any"],
)
def test_idle_workers_are_woken_before_those_that_run_jobs(make_sleeper, wake, idle):
    """The latter announce shorter sleeps: they may have no thread for another job."""
    busy = [make_sleeper() for _ in range(3)]
    Worker.objects.update(sleeping_until=timezone.now() + timedelta(seconds=BUSY_SECONDS))
    rested = [make_sleeper() for _ in range(idle)]

    wake()

    assert [one.was_notified() for one in rested] == [True] * idle
    assert not any(one.was_notified() for one in busy)


def test_as_many_of_a_kind_are_woken_as_there_are_jobs(make_sleeper):
    sleepers = [make_sleeper(queues=["heavy"], exclude_queues=["light"]) for _ in range(3)]
    for _ in range(2):
        make_job(state="scheduled")

    maintain.promote("default")

    assert [sleeper.was_notified() for sleeper in sleepers].count(True) == 2


@pytest.mark.parametrize("filters", [{}, {"queues": ["default"]}], ids=["all", "some queues"])
@pytest.mark.parametrize(
    "wake",
    [lambda: noop.using(tenant="acme").delay(), lambda: wake_any_workers("default", most=1)],
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
    with turned_loop(**({"queues": ["mail"]} if why == "filtered" else {})) as loop:
        (running,) = loop.take(1)
        assert running.id == first.pk
        loop.claim_loop.claimed_jobs.draining = why == "draining"
        loop.claim_loop.run_once()  # who begins to drain wakes somebody
        other = make_sleeper()

        loop.end(running, gates=running._claimed.gates)
        loop.turn_until(lambda: not other.is_announced)

    assert other.was_notified()


def test_asking_worker_is_left_out_when_it_wakes_another(make_sleeper):
    asking, other = make_sleeper(), make_sleeper()

    assert wake_any_workers(asking.db, most=5, worker_id=asking.id) == 1

    assert other.was_notified()
    assert not asking.was_notified()
