"""Guarantee 5: an enqueue is a plain INSERT in the caller's transaction."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from django_tenantqueue.exceptions import QueueRetired
from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations import control, queues
from tests.factories import make_jobs, make_queue, state_of
from tests.testapp.tasks import echo, noop

SECONDS = 20.0


@contextmanager
def held_open(threads, function):
    """Run `function` in a transaction of another thread, open inside the with block."""
    reached, go = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            made = function()
            reached.set()
            assert go.wait(SECONDS)
        return made

    holder = threads.start(hold)
    try:
        assert reached.wait(SECONDS), holder.result(0)
        yield holder
    finally:
        go.set()
        holder.result(SECONDS)


def test_job_is_stored_when_its_transaction_commits(threads):
    with held_open(threads, noop.using(tenant="acme").delay) as holder:
        assert not Job.objects.exists()

    assert state_of(holder.result().pk) == "ready"


def test_nothing_is_left_when_the_transaction_is_rolled_back():
    with transaction.atomic():
        noop.using(tenant="acme").delay()
        noop.using(tenant="acme").enqueue_many([()] * 3)
        transaction.set_rollback(True)

    assert not Job.objects.exists()
    assert noop.using(tenant="acme").delay().refresh().state == "ready"


def test_nobody_waits_when_an_enqueue_is_held_open(worker, threads):
    queue = make_queue("acme")
    make_jobs(queue, 3)
    held = worker.claim(1)

    with held_open(threads, noop.using(tenant="acme").delay):
        noop.using(tenant="acme").delay()
        noop.using(tenant="acme").enqueue_many([()] * 3)
        assert worker.finish(held) == {held[0].id}
        assert len(worker.claim(5)) == 5
        control.tune_queue(queue.pk, num_slots=9)
        control.pause([queue.pk])


def test_queue_is_there_when_its_first_use_is_held_open(threads, worker):
    with held_open(threads, noop.using(tenant="new").delay):
        assert TenantQueue.objects.get(tenant="new").num_slots == 5
        other = noop.using(tenant="new").delay()
        assert [job.id for job in worker.claim()] == [other.pk]


def test_queue_stays_when_its_first_use_is_rolled_back():
    with transaction.atomic():
        noop.using(tenant="new").delay()
        transaction.set_rollback(True)

    assert TenantQueue.objects.filter(tenant="new").count() == 1
    assert noop.using(tenant="new").delay().queue_id == TenantQueue.objects.get().pk


def test_first_uses_do_not_wait_when_many_race_in_open_transactions(threads):
    together = threading.Barrier(6)

    def first_use():
        with transaction.atomic():
            together.wait(SECONDS)
            job = noop.using(tenant="new").delay()
            together.wait(SECONDS)  # all six have inserted before one of them commits
        return job.queue_id

    queues.forget_queues()
    running = [threads.start(first_use) for _ in range(6)]

    assert {thread.result(SECONDS) for thread in running} == {TenantQueue.objects.get().pk}
    assert Job.objects.count() == 6


def test_enqueue_works_when_the_caller_is_repeatable_read_and_the_queue_is_new(threads):
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM tenantqueue_tenantqueue")
        threads.run(noop.using(tenant="new").delay)
        queues.forget_queues()
        noop.using(tenant="new").delay()
        ids = noop.using(tenant="new").enqueue_many([()] * 2)

    assert len(ids) == 2
    assert TenantQueue.objects.count() == 1
    assert Job.objects.count() == 4


def test_retired_queue_takes_no_job_when_its_id_is_known_already():
    job = noop.using(tenant="acme").delay()
    control.tune_queue(job.queue_id, retired=True)

    with pytest.raises(QueueRetired, match="'acme' is retired"):
        noop.using(tenant="acme").delay()
    with pytest.raises(QueueRetired, match="'acme' is retired"):
        noop.using(tenant="acme").enqueue_many([()])
    assert Job.objects.count() == 1


def test_bulk_stores_nothing_when_one_call_cannot_be_encoded():
    def calls():
        for _ in range(6000):
            yield {"value": 1}
        yield {"value": object()}

    with pytest.raises(ValueError, match="'value' is of type object"):
        echo.using(tenant="acme").enqueue_many(calls())

    assert not Job.objects.exists()


def test_ids_are_in_the_order_of_the_calls_when_they_are_enqueued_in_bulk():
    ids = echo.using(tenant="acme").enqueue_many(range(6001))

    assert ids == sorted(ids)
    rows = Job.objects.order_by("id").values_list("args", flat=True)
    assert [args["args"] for args in rows] == [[number] for number in range(6001)]


def test_queue_is_found_when_another_thread_forgets_all_at_that_moment(monkeypatch):
    known = TenantQueue.objects.get(pk=noop.using(tenant="acme").delay().queue_id)
    monkeypatch.setattr(queues, "_queue_ids", {})
    remember = queues._remember

    def forget_then(*args):
        remember(*args)
        queues.forget_queues()

    monkeypatch.setattr(queues, "_remember", forget_then)

    assert noop.using(tenant="acme").delay().queue_id == known.pk
    assert noop.using(tenant="new").delay().queue_id != known.pk
