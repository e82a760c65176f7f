"""Guarantee 4: a claim is bounded, and what can run is found all the same."""

from __future__ import annotations

import pytest
from django.db import connection

from django_tenantqueue.models import TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.operations.claim import BLOCKED_SECONDS, Filters, Verdict
from tests.factories import (
    Clock,
    make_blocked_queues,
    make_job,
    make_jobs,
    make_queue,
    make_spent_queues,
)

BLOCKED_QUEUES = 2000
STATEMENTS = BLOCKED_QUEUES // 200 + 2
"""A statement visits 200 queues: so many find what lies behind all the blocked ones."""


def statements_until_claimed(worker) -> int:
    for number in range(1, 10 * STATEMENTS):
        if worker.claim(5):
            return number
        assert worker.verdict is Verdict.AGAIN, "it would sleep on an unfinished walk"
    raise AssertionError("the free queue is never found")


@pytest.mark.parametrize(
    ("make", "priority", "blocked_priority"),
    [
        (make_blocked_queues, 300, 100),
        (make_blocked_queues, 100, 300),
        (make_blocked_queues, 100, 100),
        (make_spent_queues, 300, 100),
        (make_spent_queues, 100, 300),
    ],
)
def test_free_queue_is_found_when_thousands_are_full_or_paused_or_have_used_up_their_rate(
    worker, make, priority, blocked_priority
):
    make(BLOCKED_QUEUES, priority=blocked_priority)
    make_jobs(make_queue(num_slots=1), 1, priority=priority)

    assert statements_until_claimed(worker) <= STATEMENTS


def test_worker_rests_when_thousands_have_used_up_their_rate(worker_factory):
    clock = Clock()
    worker = worker_factory(clock=clock)
    make_spent_queues(BLOCKED_QUEUES, priority=100)
    began = clock.now
    worker.claim(5)
    while worker.verdict is Verdict.AGAIN:
        clock.now += 0.8 * BLOCKED_SECONDS / STATEMENTS  # so long each takes, whatever the machine
        worker.claim(5)

    passed = clock.now - began
    assert worker.verdict is Verdict.BLOCKED
    assert 0.5 * BLOCKED_SECONDS < passed < BLOCKED_SECONDS
    assert worker.claimer.wait_seconds >= min(0.9 * BLOCKED_SECONDS, passed)


def test_free_queue_is_found_again_when_it_has_been_served_before(worker):
    make_blocked_queues(BLOCKED_QUEUES, priority=100)
    make_jobs(make_queue(num_slots=1), 3, priority=300)

    for _ in range(3):
        held = []
        for _ in range(STATEMENTS):
            held = worker.claim(5)
            if held:
                break
        assert len(held) == 1
        worker.finish(held)


def test_walk_is_bounded_when_thousands_are_blocked(worker):
    make_blocked_queues(BLOCKED_QUEUES, priority=100)

    worker.claim(5)

    assert len(worker.look.steps) == 200
    assert not worker.look.is_pass


def test_blocked_queue_is_looked_at_again_when_a_quarter_second_has_passed(worker_factory):
    clock = Clock()
    worker, other = worker_factory(clock=clock), worker_factory()
    queue = make_queue(num_slots=1)
    make_jobs(queue, 2)
    held = other.claim()
    assert worker.claim() == []
    assert worker.verdict is Verdict.BLOCKED
    assert worker.claimer.wait_seconds <= BLOCKED_SECONDS
    other.finish(held)

    clock.now += BLOCKED_SECONDS

    assert len(worker.claim()) == 1


def test_blocked_queue_is_not_visited_when_it_was_a_moment_ago(worker_factory):
    clock = Clock()
    worker = worker_factory(clock=clock)
    queue = make_queue(num_slots=0)
    make_jobs(queue, 1)

    worker.claim()
    worker.claim()

    assert worker.look.sights == []
    assert worker.verdict is Verdict.BLOCKED


def test_blocked_queue_is_looked_at_at_once_when_one_of_its_jobs_finishes_here(worker_factory):
    clock = Clock()
    worker = worker_factory(clock=clock)
    ids = make_jobs(make_queue(num_slots=1), 2)
    held = worker.claim()
    assert worker.claim() == []

    assert [job.id for job in worker.claim(finished=held)] == ids[1:]


def test_resumed_queue_is_served_when_a_quarter_second_has_passed(worker_factory):
    clock = Clock()
    worker = worker_factory(clock=clock)
    queue = make_queue(paused=True)
    make_jobs(queue, 1)
    assert worker.claim() == []
    control.resume([queue.pk])

    clock.now += BLOCKED_SECONDS

    assert len(worker.claim()) == 1


def test_jobs_of_a_locked_queue_are_taken_when_the_lock_has_ended(worker, open_connection):
    locked, free = make_queue(), make_queue()
    job = make_job(locked, priority=100)
    make_jobs(free, 2, priority=200)
    operator = open_connection()

    with operator.transaction():
        operator.execute(
            "SELECT FROM tenantqueue_tenantqueue WHERE id = %s FOR UPDATE", [locked.pk]
        )
        assert {job.queue_id for job in worker.claim()} == {free.pk}
        worker.claim()
        assert worker.verdict is Verdict.CONTENDED

    assert [taken.id for taken in worker.claim()] == [job.pk]


@pytest.mark.parametrize(
    ("filters", "taken"),
    [
        (Filters(queues=["mail"]), {("acme", "mail"), ("globex", "mail")}),
        (Filters(exclude_queues=["mail"]), {("acme", "reports")}),
        (Filters(tenants=["acme"]), {("acme", "mail"), ("acme", "reports")}),
        (Filters(queues=["mail"], tenants=["acme"]), {("acme", "mail")}),
    ],
)
def test_only_matching_queues_are_served_when_a_worker_has_filters(worker_factory, filters, taken):
    queues = {
        make_queue(tenant, name).pk: (tenant, name)
        for tenant, name in (("acme", "mail"), ("acme", "reports"), ("globex", "mail"))
    }
    for queue_id in queues:
        make_jobs(queue_id, 1)

    jobs = worker_factory(filters).claim_all()

    assert {queues[job.queue_id] for job in jobs} == taken


def test_matching_queue_is_found_when_thousands_are_for_others(worker_factory):
    worker = worker_factory(Filters(queues=["mail"]))
    TenantQueue.objects.bulk_create(
        TenantQueue(tenant=f"tenant-{number}", name="other") for number in range(BLOCKED_QUEUES)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tenantqueue_job_hot (queue_id, lane, priority, task, source_type, "
            "source_method) SELECT id, 100, 100, 'noop', 'task', 'noop' "
            "FROM tenantqueue_tenantqueue"
        )
    make_jobs(make_queue("acme", "mail"), 1, priority=200)

    assert statements_until_claimed(worker) <= STATEMENTS
