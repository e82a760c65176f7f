"""Guarantee 2: which job is claimed next."""

from __future__ import annotations

import random
import threading

import pytest
from django.db import transaction
from django.test import override_settings

from django_tenantqueue.models import Job
from django_tenantqueue.operations import control
from tests.factories import make_job, make_jobs, make_queue
from tests.testapp.tasks import noop

pytestmark = pytest.mark.usefixtures("manner")


def by_priority_and_id(jobs):
    return [pk for pk, _ in sorted(jobs, key=lambda job: (job[1], job[0]))]


def make_mixed(queue, count, seed=1):
    """Make jobs of several priorities and return (id, priority) of each."""
    chosen = random.Random(seed)
    made = []
    for _ in range(count):
        priority = chosen.choice([100, 120, 120, 240, 300])
        made.append((make_job(queue, priority=priority).pk, priority))
    return made


def test_jobs_come_by_priority_and_id_when_one_slot_is_claimed_by_many_workers(
    worker_factory, threads
):
    queue = make_queue(num_slots=1)
    made = make_mixed(queue, 120)

    def race(worker, room):
        while Job.objects.unfinished().exists():
            worker.finish(worker.claim(room))
            worker.claimer.places.forget_blocked()

    for thread in [threads.start(race, worker_factory(), room) for room in (1, 1, 3, 10)]:
        thread.result(60)

    claimed = Job.objects.order_by("queued_at").values_list("pk", flat=True)
    assert list(claimed) == by_priority_and_id(made)


@pytest.mark.parametrize("room", [1, 7, 60, 200])
def test_jobs_come_by_priority_and_id_when_a_claim_has_much_room(worker, room):
    queue = make_queue(num_slots=1000)
    made = make_mixed(queue, 100)

    assert [job.id for job in worker.claim_all(room)] == by_priority_and_id(made)


@pytest.mark.parametrize("room", [1, 3, 25])
def test_best_priority_comes_first_over_all_tenants_when_all_have_slots(worker, room):
    for number in range(40):
        make_jobs(make_queue(num_slots=100), 2, priority=300 - number % 3)
    make_jobs(make_queue(num_slots=100), 5, priority=299)

    lanes = [job.lane for job in worker.claim_all(room)]

    assert len(lanes) == 85
    assert lanes == sorted(lanes)


def test_whole_backlog_of_the_best_priority_comes_first_when_room_is_larger_than_its_shares(worker):
    """A lane must not be left while a queue of it was cut at its share of the room."""
    big, small, later = (make_queue(num_slots=100) for _ in range(3))
    make_jobs(big, 40, priority=100)
    make_jobs(small, 1, priority=100)
    make_jobs(later, 40, priority=200)

    lanes = [job.lane for job in worker.claim_all(30)]

    assert lanes == [100] * 41 + [200] * 40


def test_worse_priority_is_served_when_the_better_one_has_no_slot_left(worker):
    full, free = make_queue(num_slots=1), make_queue(num_slots=1)
    make_jobs(full, 3, priority=100)
    make_jobs(free, 1, priority=300)

    assert [job.queue_id for job in worker.claim(5)] == [full.pk, free.pk]


@pytest.mark.parametrize("room", [1, 10])
def test_only_a_tenants_own_priorities_count_when_the_scope_is_the_tenant(worker, room):
    with override_settings(TENANTQUEUE={"PRIORITY_SCOPE": "tenant"}):
        for tenant, priority in (("urgent", 100), ("patient", 300)):
            for offset in (1, 0):
                task = noop.using(tenant=tenant, priority=priority + offset)
                for _ in range(3):
                    task.delay()
        jobs = worker.claim_all(room)

    tenants = dict(Job.objects.values_list("pk", "queue__tenant"))
    priorities = dict(Job.objects.values_list("pk", "priority"))
    assert [tenants[job.id] for job in jobs] == ["urgent", "patient"] * 6
    for tenant, priority in (("urgent", 100), ("patient", 300)):
        own = [priorities[job.id] for job in jobs if tenants[job.id] == tenant]
        assert own == [priority] * 3 + [priority + 1] * 3


def test_late_commit_is_next_when_its_id_is_lower(worker, threads):
    queue = make_queue("acme", num_slots=1)
    reached, go = threading.Event(), threading.Event()

    def enqueue_slowly():
        with transaction.atomic():
            job = noop.using(tenant="acme").delay()
            reached.set()
            assert go.wait(20)
        return job.pk

    late = threads.start(enqueue_slowly)
    assert reached.wait(20)
    later_ids = make_jobs(queue, 3)

    (first,) = worker.claim()
    assert first.id == later_ids[0]
    go.set()
    late_id = late.result(20)
    worker.finish([first])

    assert late_id < later_ids[0]
    assert [job.id for job in worker.claim_all()] == [late_id, *later_ids[1:]]


def test_failed_job_is_next_when_it_is_repeated_at_once(worker):
    ids = make_jobs(make_queue(num_slots=1), 3)

    worker.fail(worker.claim())

    assert [job.id for job in worker.claim_all()] == ids


def test_failed_job_lets_others_pass_when_it_waits_for_its_time(worker):
    ids = make_jobs(make_queue(num_slots=1), 3)

    worker.fail(worker.claim(), delay=1000.0)

    assert [job.id for job in worker.claim_all()] == ids[1:]


def test_returned_job_keeps_its_place_when_it_was_not_started(worker):
    ids = make_jobs(make_queue(num_slots=1), 3)

    worker.give_back(worker.claim())

    assert [job.id for job in worker.claim_all()] == ids


def test_next_claim_follows_when_a_priority_is_changed(worker):
    ids = make_jobs(make_queue(num_slots=1), 5)
    control.change_priority([ids[3]], 100)

    assert [job.id for job in worker.claim_all()] == [ids[3], *ids[:3], ids[4]]


def test_job_that_is_locked_is_passed_over_when_an_operator_holds_it(worker, open_connection):
    ids = make_jobs(make_queue(num_slots=1), 2)
    operator = open_connection()

    with operator.transaction():
        operator.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [ids[0]])
        assert [job.id for job in worker.claim()] == [ids[1]]


def test_blocking_jobs_wait_when_only_coroutines_have_room(worker):
    queue = make_queue(num_slots=10)
    make_jobs(queue, 2)
    coroutine = make_jobs(make_queue(num_slots=10), 1, is_async=True)

    request = worker.claimer.request(0, 5)
    assert request.room_threads == 0
    assert [job.id for job in worker.claim(0, 5)] == coroutine


def test_later_job_of_a_queue_is_held_back_when_an_earlier_one_has_no_executor(worker):
    queue = make_queue(num_slots=10)
    blocking = make_job(queue)
    coroutine = make_job(queue, is_async=True)

    assert worker.claim(0, 5) == []
    worker.claimer.places.forget_blocked()
    assert [job.id for job in worker.claim(2, 5)] == [blocking.pk, coroutine.pk]
