"""Slots are strict, whatever races for them."""

import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations.claim import Claimer, Filters
from django_tenantqueue.operations.control import tune_queue
from django_tenantqueue.queries.round_trip import exchange_in_transaction
from django_tenantqueue.states import State
from tests.intervals import Limits, breaches, most_at_once
from tests.testapp.models import Interval
from tests.testapp.tasks import noop, work
from tests.timing import assert_within

from .workers import Workers, clock, make_queue, wait_for_end, wait_until

TENANTS = [f"tenant {number}" for number in range(20)]


def enqueue_work(jobs_per_tenant: int) -> list[int]:
    """Enqueue tasks of 0 to 20 ms that write their own intervals."""
    chance = random.Random(7)
    ids = []
    for tenant in TENANTS:
        calls = [(tenant, chance.uniform(0, 20)) for _ in range(jobs_per_tenant)]
        ids += work.using(tenant=tenant).enqueue_many(calls)
    return ids


def intervals_by_tenant(ids: list[int]) -> dict[str, list[tuple[object, object]]]:
    found = defaultdict(list)
    for row in Interval.objects.filter(job_id__in=ids):
        found[row.key].append((row.started_at, row.ended_at))
    return found


def claims_by_tenant(ids: list[int]) -> dict[str, list[tuple[object, object]]]:
    """Return [queued_at, finished_at) of the job rows."""
    found = defaultdict(list)
    rows = Job.objects.filter(pk__in=ids, final=True)
    for tenant, queued, finished in rows.values_list("queue__tenant", "queued_at", "finished_at"):
        found[tenant].append((queued, finished))
    return found


def bodies_lie_inside_their_claims(ids: list[int]) -> bool:
    """Whether each job ran once, between its claim and its end."""
    bodies = {row.job_id: row for row in Interval.objects.filter(job_id__in=ids)}
    return Interval.objects.count() == len(bodies) == len(ids) and all(
        job.queued_at < bodies[job.pk].started_at <= bodies[job.pk].ended_at < job.finished_at
        for job in Job.objects.filter(pk__in=ids, final=True)
    )


@contextmanager
def claim_held_open(tenant: str, room: int) -> Iterator[list[int]]:
    """Claim jobs of a tenant in a transaction that is rolled back at the end of the block."""
    claimed, end = [], threading.Event()
    ready = threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                request = Claimer(0, Filters(tenants=[tenant])).request(room, 0)
                answer = exchange_in_transaction("default", 0, request=request)
                claimed.extend(job.id for job in answer.jobs)
                ready.set()
                end.wait(60)
                transaction.set_rollback(True)
        finally:
            ready.set()
            connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert ready.wait(20)
        yield claimed
    finally:
        end.set()
        thread.join()


@pytest.mark.heavy
def test_slots_hold_when_16_processes_race_for_them(workers: Workers):
    for tenant in TENANTS:
        make_queue(tenant, num_slots=3)
    ids = enqueue_work(jobs_per_tenant=100)
    for _ in range(4):
        workers.launch("--processes=4", "--threads=4")

    jobs = wait_for_end(ids, timeout=90)

    assert {job.state for job in jobs} == {State.SUCCESS}
    assert len({job.worker_id for job in jobs}) > 8  # they did race
    bodies, claims = intervals_by_tenant(ids), claims_by_tenant(ids)
    assert sum(map(len, bodies.values())) == len(ids)  # each ran once
    assert {tenant: most_at_once(claims[tenant]) for tenant in TENANTS} == dict.fromkeys(TENANTS, 3)
    assert max(most_at_once(bodies[tenant]) for tenant in TENANTS) == 3


@pytest.mark.heavy
def test_no_claim_goes_over_the_limit_when_slots_are_edited_live(workers: Workers):
    queues = {tenant: make_queue(tenant, num_slots=3) for tenant in TENANTS[:4]}
    limits = {tenant: Limits(3) for tenant in queues}
    chance = random.Random(3)
    ids = []
    for tenant in queues:
        calls = [(tenant, chance.uniform(5, 20)) for _ in range(250)]
        ids += work.using(tenant=tenant).enqueue_many(calls)
    finished = Job.objects.filter(pk__in=ids, final=True)
    for _ in range(2):
        workers.launch("--processes=2")

    def edit(choices: list[int]) -> None:
        for tenant, queue in queues.items():
            slots, before = chance.choice(choices), clock()
            tune_queue(queue.pk, num_slots=slots)
            limits[tenant].change(slots, before=before, after=clock())

    while (done := finished.count()) < len(ids) - 100:
        edit([0, 1, 2, 4, 7])
        wait_until(lambda done=done: finished.count() >= done + 25 or nothing_can_end(queues))
    edit([5])
    wait_for_end(ids)

    claims = claims_by_tenant(ids)
    assert bodies_lie_inside_their_claims(ids)
    for tenant in queues:
        assert breaches(claims[tenant], limits[tenant]) == []
        assert most_at_once(claims[tenant]) > 3  # the raised limits were used, too


def nothing_can_end(queues: dict[str, TenantQueue]) -> bool:
    """Whether nothing runs, and no queue with a slot has anything left."""
    left = Job.objects.unfinished().filter(queue_id__in=[queue.pk for queue in queues.values()])
    return not (left.filter(queue__num_slots__gt=0).exists() or left.active().exists())


def test_other_queues_go_on_when_a_claim_is_held_open(workers: Workers):
    held = noop.using(tenant="held").enqueue_many([()] * 30)
    with claim_held_open("held", room=3) as claimed:
        assert claimed == held[:3]
        others = [
            job_id
            for tenant in TENANTS
            for job_id in noop.using(tenant=tenant).enqueue_many([()] * 20)
        ]
        workers.start(processes=2)

        wait_for_end(others)
        late = noop.using(tenant="late").delay()
        wait_for_end([late.pk])

        assert not Job.objects.filter(pk__in=held).exclude(state=State.READY).exists()
        released = clock()

    jobs = wait_for_end(held)
    assert jobs[0].queued_at > released
    assert_within(2.0, jobs[0].queued_at - released)
