"""Jobs of one tenant are claimed in the order of (priority, id)."""

import random
import threading

import pytest
from django.db import connection, transaction

from django_tenantqueue.models import Job
from django_tenantqueue.states import State
from tests.testapp.models import Interval
from tests.testapp.tasks import work

from .tasks import work_until
from .workers import Workers, clock, make_queue, wait_for_end, wait_until


def runs(key: str) -> list[tuple[int, int]]:
    """Return (job, attempt) of the runs in the order in which they started."""
    rows = Interval.objects.filter(key=key).order_by("started_at")
    return list(rows.values_list("job_id", "attempt"))


@pytest.mark.heavy
def test_jobs_start_in_order_when_processes_race_for_single_slots(workers: Workers):
    tenants = [f"tenant {number}" for number in range(6)]
    chance = random.Random(5)
    ids = []
    for tenant in tenants:
        make_queue(tenant, num_slots=1)
        for _ in range(15):
            priority = chance.choice([-5, 100, 100, 240, 240, 240, 360])
            ids += work.using(tenant=tenant, priority=priority).enqueue_many([(tenant, 3)] * 4)
    for _ in range(2):
        workers.start("--threads=1", processes=2)

    jobs = wait_for_end(ids)

    for tenant in tenants:
        own = [job for job in jobs if job.queue.tenant == tenant]
        in_order = sorted(own, key=lambda job: (job.priority, job.pk))
        assert [job.pk for job in own] == [job.pk for job in in_order]
        assert runs(tenant) == [(job.pk, 1) for job in in_order]
    shares = {(job.queue.tenant, job.worker_id) for job in jobs}
    assert len(shares) > len(tenants)  # they did race


@pytest.mark.heavy
def test_a_retry_keeps_its_place_when_it_is_ready_at_once(workers: Workers):
    make_queue("acme", num_slots=1)
    bound = work_until.using(tenant="acme", max_attempts=3)
    ids = [bound.delay("acme", 3 if n == 4 else 1, after=0).pk for n in range(10)]
    workers.launch("--processes=2")

    wait_for_end(ids)

    retried = ids[4]
    first_runs = [(job_id, 1) for job_id in ids]
    expected = [*first_runs[:5], (retried, 2), (retried, 3), *first_runs[5:]]
    assert runs("acme") == expected


@pytest.mark.heavy
def test_a_retry_goes_before_later_ids_when_its_backoff_is_over(workers: Workers):
    make_queue("acme", num_slots=1)
    first = work_until.using(tenant="acme", max_attempts=2).delay("acme", 2, after=0.3)
    ids = work.using(tenant="acme").enqueue_many([("acme", 25)] * 80)
    workers.launch("--processes=2")

    wait_for_end([first.pk, *ids])

    order = runs("acme")
    at = order.index((first.pk, 2))
    assert order[0] == (first.pk, 1)
    assert 1 < at < len(order) - 1
    assert [job_id for job_id, _ in order if job_id != first.pk] == ids


@pytest.mark.heavy
def test_an_urgent_job_is_next_when_it_is_committed_late(workers: Workers):
    make_queue("acme", num_slots=1)
    written, commit = threading.Event(), threading.Event()
    late: list[int] = []

    def enqueue_late() -> None:
        try:
            with transaction.atomic():
                late.append(work.using(tenant="acme", priority=1).delay("acme", 1).pk)
                written.set()
                commit.wait(60)
        finally:
            connection.close()

    thread = threading.Thread(target=enqueue_late)
    thread.start()
    try:
        assert written.wait(20)
        ids = work.using(tenant="acme").enqueue_many([("acme", 20)] * 60)
        workers.launch("--processes=2")
        done = Job.objects.filter(pk__in=ids, final=True, state=State.SUCCESS)
        wait_until(lambda: done.count() >= 5)
    finally:
        commit.set()
        thread.join()
    committed = clock()

    jobs = wait_for_end([*late, *ids])

    order = [job.pk for job in jobs]
    assert late[0] < ids[0]
    assert [job_id for job_id in order if job_id != late[0]] == ids
    at = order.index(late[0])
    assert 5 <= at < len(order) - 1
    # the claim that was under way at the commit may still have been for another job
    assert sum(job.queued_at > committed for job in jobs[:at]) <= 1
