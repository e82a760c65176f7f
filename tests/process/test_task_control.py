"""Tasks are paused, resumed and capped while workers run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.states import State
from tests.factories import cap_task, pause_task, resume_task
from tests.intervals import most_at_once
from tests.testapp.models import Interval
from tests.testapp.tasks import spin, work
from tests.timing import assert_within

from .tasks import work_or_hold
from .workers import Gate, Workers, clock, make_queue, wait_for_end, wait_until, wait_until_two_hold


@pytest.mark.heavy
def test_others_go_on_while_a_task_is_paused(workers: Workers):
    for tenant in ("acme", "zeta"):
        make_queue(tenant, num_slots=4)
    bad, good = [], []
    for _ in range(75):
        for tenant in ("acme", "zeta"):
            bad += spin.using(tenant=tenant).enqueue_many([(0.005,)] * 2)
            good.append(work.using(tenant=tenant).delay(tenant, 5).pk)
    workers.start("--threads=4", processes=2)
    started = Job.objects.filter(pk__in=bad, queued_at__isnull=False)
    wait_until(lambda: started.filter(final=True).count() >= 10)

    pause_task(spin.name)
    paused = clock()
    wait_for_end(good, timeout=60)
    done = clock()
    left = Job.objects.filter(pk__in=bad, final=False)
    wait_until(lambda: not left.exclude(state=State.HELD).exists(), what="the rest is held")

    ended = Job.objects.filter(pk__in=bad, final=True)
    assert left.count() + ended.count() == len(bad)
    assert left.count() > 100
    # those that a claim or a buffer held at the instant of the pause
    assert_within(1.0, max(j.queued_at for j in ended) - paused)
    assert set(left.values_list("attempt", "worker")) == {(0, None)}
    # each costs one claim, and perhaps the one that was given back: none is walked again
    assert max(left.values_list("claim_seq", flat=True)) <= 3
    assert_within(20.0, done - paused)

    resumed = clock()
    resume_task(spin.name)
    jobs = wait_for_end(bad, timeout=60)
    first = min(job.queued_at for job in jobs if job.queued_at > resumed)
    assert_within(1.0, first - resumed)


def test_buffered_jobs_do_not_start_when_their_task_is_paused(workers: Workers, gate: Gate):
    make_queue("acme", num_slots=1000)
    workers.start("--threads=2")
    ids = work_or_hold.using(tenant="acme").enqueue_many([(str(gate), n) for n in range(600)])
    jobs = Job.objects.filter(pk__in=ids, final=False)
    wait_until_two_hold(ids)

    pause_task(work_or_hold.name)
    wait_until(lambda: not jobs.filter(state=State.QUEUED).exists(), what="the buffer is empty")
    gate.open()
    wait_until(lambda: not jobs.filter(state=State.RUNNING).exists())

    wait_until(lambda: jobs.filter(state=State.HELD).count() == 398)
    assert jobs.count() == 398


@pytest.mark.heavy
def test_cap_holds_over_all_tenants_and_workers(workers: Workers):
    ids = []
    for number in range(5):
        make_queue(f"t{number}", num_slots=10)
    cap_task(work.name, 3)
    for number in range(5):
        ids += work.using(tenant=f"t{number}").enqueue_many([("capped", 8.0)] * 40)
    for _ in range(2):
        workers.start("--threads=8", processes=2)

    jobs = wait_for_end(ids, timeout=60)

    assert {job.state for job in jobs} == {State.SUCCESS}
    intervals = Interval.objects.filter(key="capped").values_list("started_at", "ended_at")
    assert most_at_once(intervals) == 3


def test_burst_worker_ends_what_is_capped(workers: Workers):
    cap_task(work.name, 1)
    ids = [work.using(tenant=f"t{n}").delay("capped", 2.0).pk for n in range(30)]

    workers.run("--until-empty", "--threads=2", "--no-maintenance")

    assert set(Job.objects.filter(pk__in=ids).values_list("state", flat=True)) == {State.SUCCESS}


def test_cap_that_is_set_while_jobs_run_drains(workers: Workers):
    make_queue("acme", num_slots=50)
    ids = work.using(tenant="acme").enqueue_many([("capped", 20.0)] * 300)
    workers.start("--threads=8", processes=2)
    wait_until(lambda: Job.objects.filter(pk__in=ids, final=True).count() >= 20)

    cap_task(work.name, 2)
    capped = clock()

    wait_for_end(ids, timeout=60)
    # claims that could not see the cap count within about a second
    late = Interval.objects.filter(started_at__gt=capped + timedelta(seconds=2))
    assert late.count() > 10
    assert most_at_once(late.values_list("started_at", "ended_at")) == 2
