"""Rates in real workers: kept by all of them together, reached, and no burden while they wait."""

from __future__ import annotations

import signal
from datetime import datetime

import pytest

from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations.control import tune_queue
from django_tenantqueue.operations.task_control import rate_task
from tests.intervals import breaches_of_rate
from tests.testapp.tasks import noop
from tests.timing import assert_within

from .workers import Workers, clock, make_queue, wait_for_end, wait_until

MOST_LATE = 1.5
"""A rate is reached within a tenth on a machine that has the time; a busy one starts jobs late."""


def starts_of(queue: TenantQueue) -> list[datetime]:
    rows = Job.objects.filter(queue=queue, attempt__gt=0)
    return sorted(rows.values_list("queued_at", flat=True))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("rate", "burst", "jobs", "seconds"),
    [(2.0, 1, 5, 2.0), (20.0, 10, 50, 2.0), (200.0, None, 600, 2.0)],
    ids=["low", "middle", "high"],
)
def test_rate_is_kept_and_reached_when_several_processes_work(
    workers: Workers, rate, burst, jobs, seconds
):
    queue = make_queue("acme", num_slots=50, max_per_second=rate, burst=burst)
    workers.start(processes=2)

    wait_for_end(noop.using(tenant="acme").enqueue_many([()] * jobs))

    starts = starts_of(queue)
    assert len(starts) == jobs
    assert breaches_of_rate(starts, rate, queue.burst_size) == []
    assert_within(MOST_LATE * seconds, starts[-1] - starts[0])


@pytest.mark.heavy
def test_others_go_on_and_the_worker_rests_when_a_queue_has_used_up_its_rate(workers: Workers):
    queue = make_queue("acme", num_slots=50, max_per_second=0.001, burst=1)
    runner = workers.start()
    noop.using(tenant="acme").enqueue_many([()] * 50)
    wait_until(lambda: starts_of(queue), what="the burst has started")

    jobs = wait_for_end(noop.using(tenant="free").enqueue_many([()] * 500))

    def rests() -> bool:
        (row,) = runner.rows()
        return row.heartbeat_at > jobs[-1].finished_at and 0 < row.claims_per_second < 10

    wait_until(rests, what="it claims a few times in a second")
    assert len(starts_of(queue)) == 1


def test_jobs_start_at_once_when_the_rate_is_raised(workers: Workers):
    queue = make_queue("acme", num_slots=50, max_per_second=0.001, burst=1)
    workers.start()
    ids = noop.using(tenant="acme").enqueue_many([()] * 20)
    wait_until(lambda: starts_of(queue), what="the burst has started")

    tuned_at = clock()
    tune_queue(queue.pk, max_per_second=1000.0, burst=1000)

    jobs = wait_for_end(ids)
    assert_within(1.0, jobs[-1].queued_at - tuned_at)


@pytest.mark.heavy
def test_rate_of_a_task_is_kept_and_reached_when_a_worker_is_killed(workers: Workers):
    rate_task(noop.name, 20.0, 2)
    for tenant in ("acme", "zeta"):
        make_queue(tenant, num_slots=50)
    doomed = workers.start()
    workers.start()

    ids = [
        job_id
        for tenant in ("acme", "zeta")
        for job_id in noop.using(tenant=tenant).enqueue_many([()] * 25)
    ]
    done = Job.objects.filter(pk__in=ids).finished()
    wait_until(lambda: done.count() >= 10, what="some have ended")
    doomed.send_all(signal.SIGKILL)

    starts = sorted(job.queued_at for job in wait_for_end(ids))
    assert breaches_of_rate(starts, 20.0, 2) == []
    assert_within(MOST_LATE * 2.4 + 1.0, starts[-1] - starts[0])
