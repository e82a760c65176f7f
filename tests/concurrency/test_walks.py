"""Guarantee 2 when there are more places than one claim looks at."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from django_tenantqueue.models import TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.operations.claim import Claimer, Verdict
from django_tenantqueue.operations.places import BLOCKED_SECONDS, FEW_STEPS, MORE_STEPS, MOST_STEPS
from tests.factories import Clock, FakeWorker, make_blocked_queues, make_jobs, make_queue


def settle(worker: FakeWorker) -> None:
    while not worker.claim(5) and worker.verdict is Verdict.AGAIN:
        pass


def claim_next(worker: FakeWorker, *, forget: bool) -> list[int]:
    """Claim until something is taken, finish it, and return the ids."""
    if forget:
        worker.claimer.places.forget_blocked()
    while not (taken := worker.claim(5)):
        pass
    worker.finish(taken)
    return [job.id for job in taken]


@pytest.mark.parametrize("forget", [True, False], ids=["notified", "remembering"])
def test_better_job_is_not_overtaken_when_its_slot_becomes_free_elsewhere(worker_factory, forget):
    """The worker knows the queue as full, and meets it again under a worse priority."""
    worker, other = worker_factory(), worker_factory()
    queue = make_queue(num_slots=1)
    better = make_jobs(queue, 2, priority=100)
    worse = make_jobs(queue, 1, priority=300)
    held = other.claim()
    make_blocked_queues(300, priority=200)
    assert worker.claim(5) == []
    assert next(reversed(worker.look.steps))[0] == 200
    other.finish(held)

    assert [claim_next(worker, forget=forget) for _ in range(2)] == [better[1:], worse]


def test_new_job_is_first_when_its_priority_is_better_than_all_that_is_known(worker):
    """It is found by its id, far from where the worker's steps have come to."""
    for _ in range(2 * FEW_STEPS):
        make_jobs(make_queue(), 3, priority=200)
    make_blocked_queues(300, priority=300)
    settle(worker)
    (better,) = make_jobs(make_queue(), 1, priority=100)

    worker.finish(worker.claim(1))  # learns of it by its id
    assert worker.claim(5)[0].id == better


def test_job_that_comes_back_is_found_when_there_are_many_places(worker_factory):
    """Its id is old, and its place is not known: it is found by the steps."""
    clock = Clock()
    worker, other = worker_factory(clock=clock), worker_factory()
    make_blocked_queues(300, priority=200)
    settle(worker)
    (late,) = make_jobs(make_queue(), 1, priority=300)
    while not (held := other.claim()):
        pass
    assert [job.id for job in held] == [late]
    clock.now += 2.0
    assert worker.claim(5) == []
    clock.now += 2.0
    assert worker.claim(5) == []
    other.give_back(held)

    looks = 0
    while not (taken := worker.claim(5)):
        clock.now += BLOCKED_SECONDS
        looks += 1
        assert looks <= 10

    assert [job.id for job in taken] == [late]


def test_turns_of_new_workers_begin_anywhere_when_there_are_many_places(worker_factory):
    """Else all of them begin with the lowest ids, and a growing fleet serves high ones last."""
    queues = [make_queue() for _ in range(MOST_STEPS + 30)]
    for queue in queues:
        make_jobs(queue, 1)
    for start, following in ((queues[-10], queues[-9]), (queues[100], queues[101])):
        worker = worker_factory()
        worker.claimer = Claimer(worker.id, queue_range=(start.pk, start.pk))

        (job,) = worker.claim_some(1)

        assert job.queue_id == following.pk


def test_worker_that_begins_in_the_middle_takes_the_better_jobs_first(worker):
    low, middle = make_queue(), make_queue()
    make_blocked_queues(2 * MOST_STEPS, priority=200)
    better = make_jobs(low, 1, priority=200)
    worse = make_jobs(middle, 1, priority=300)
    start = TenantQueue.objects.order_by("-pk")[20].pk
    worker.claimer = Claimer(worker.id, queue_range=(start, start))

    assert [[job.id for job in worker.claim_and_finish(1)] for _ in range(2)] == [better, worse]


def test_each_claim_looks_at_a_bounded_number_of_blocked_queues(worker_factory):
    clock = Clock()
    worker = worker_factory(clock=clock)
    make_blocked_queues(1000, priority=200)
    settle(worker)

    for _ in range(20):
        clock.now += worker.claimer.wait_seconds
        seen = 0
        while worker.claim(5) == [] and worker.verdict is Verdict.AGAIN:
            seen += len(worker.look.sights)
            assert len(worker.look.steps) <= MORE_STEPS
        assert worker.verdict is Verdict.BLOCKED
        assert worker.claimer.wait_seconds == BLOCKED_SECONDS
        assert seen <= MORE_STEPS


def test_open_queues_are_served_without_looking_at_the_blocked_ones(worker_factory):
    clock = Clock()
    worker = worker_factory(clock=clock)
    make_blocked_queues(1000, priority=200)
    queues = [make_queue() for _ in range(20)]
    for queue in queues:
        make_jobs(queue, 50, priority=200)
    settle(worker)

    seen = 0
    for _ in range(20):
        taken = worker.claim(10)
        seen += len(worker.look.sights)
        assert len(taken) == 10
        worker.finish(taken)

    assert seen <= 20 * (10 + FEW_STEPS)


def test_queue_that_is_resumed_among_many_is_served_by_the_next_claims(worker_factory):
    clock = Clock()
    worker = worker_factory(clock=clock)
    make_blocked_queues(1000, priority=200)
    queue = make_queue(paused=True)
    (job_id,) = make_jobs(queue, 1, priority=300)
    settle(worker)
    worker.claim(5)

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")  # else within seconds
        control.resume([queue.pk])
    clock.now += BLOCKED_SECONDS

    for _ in range(20):
        if taken := worker.claim(5):
            break
    assert [job.id for job in taken] == [job_id]
