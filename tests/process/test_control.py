"""What operators edit acts on the next claims of workers that run."""

import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.operations.control import change_priority, pause, resume, tune_queue
from django_tenantqueue.states import State
from tests.intervals import most_at_once
from tests.testapp.tasks import work
from tests.timing import assert_within

from .tasks import hold, work_or_hold
from .workers import Gate, Workers, clock, make_queue, wait_for_end, wait_until, wait_until_two_hold


def test_a_job_is_next_when_its_priority_is_raised(workers: Workers):
    make_queue("acme", num_slots=1)
    ids = work.using(tenant="acme").enqueue_many([("acme", 20)] * 50)
    workers.launch()
    done = Job.objects.filter(pk__in=ids, final=True)
    wait_until(lambda: done.count() >= 3)

    assert change_priority([ids[-1]], 1) == [ids[-1]]
    edited = clock()

    jobs = wait_for_end(ids)
    order = [job.pk for job in jobs]
    at = order.index(ids[-1])
    assert order[:at] + order[at + 1 :] == ids[:-1]
    # a claim that was under way at the edit may still have been for another job
    assert sum(job.queued_at > edited for job in jobs[:at]) <= 1


def test_more_jobs_start_when_slots_are_added(workers: Workers, gate: Gate):
    queue = make_queue("acme", num_slots=1)
    workers.start()
    jobs = [hold.using(tenant="acme").delay(str(gate)) for _ in range(5)]
    gate.wait_for(jobs[0])
    assert not any(gate.started(job) for job in jobs[1:])

    edited = clock()
    tune_queue(queue.pk, num_slots=4)
    gate.wait_for(*jobs[:4])

    assert_within(1.0, max(job.refresh().queued_at for job in jobs[1:4]) - edited)
    assert jobs[4].refresh().state == State.READY
    gate.open()
    wait_for_end(job.pk for job in jobs)


def test_jobs_start_when_a_queue_without_slots_gets_one(workers: Workers):
    queue = make_queue("acme", num_slots=0)
    ids = work.using(tenant="acme").enqueue_many([("acme", 1)] * 5)
    workers.start()
    wait_for_end([work.using(tenant="other").delay("other", 1).pk])
    assert Job.objects.filter(pk__in=ids, state=State.READY).count() == 5

    edited = clock()
    tune_queue(queue.pk, num_slots=1)

    jobs = wait_for_end(ids)
    assert_within(1.0, jobs[0].queued_at - edited)
    assert most_at_once((job.queued_at, job.finished_at) for job in jobs) == 1


@pytest.mark.heavy
def test_no_job_is_claimed_when_the_queue_is_paused(workers: Workers):
    queue = make_queue("acme", num_slots=3)
    ids = work.using(tenant="acme").enqueue_many([("acme", 10)] * 150)
    workers.launch("--processes=2")
    done = Job.objects.filter(pk__in=ids, final=True)
    active = Job.objects.active().filter(pk__in=ids)
    wait_until(lambda: done.count() >= 10)

    pause([queue.pk])
    paused = clock()
    wait_until(lambda: not active.exists())
    wait_for_end(work.using(tenant="other").enqueue_many([("other", 1)] * 20))

    assert done.count() < len(ids)
    assert max(done.values_list("queued_at", flat=True)) < paused
    resumed = clock()
    resume([queue.pk])
    jobs = wait_for_end(ids)
    first = min(job.queued_at for job in jobs if job.queued_at > paused)
    assert first > resumed
    assert_within(1.0, first - resumed)


def test_buffered_jobs_are_given_back_when_their_queue_is_paused(workers: Workers, gate: Gate):
    queue = make_queue("acme", num_slots=1000)
    workers.start("--threads=2")
    ids = work_or_hold.using(tenant="acme").enqueue_many([(str(gate), n) for n in range(600)])
    jobs = Job.objects.filter(pk__in=ids, final=False)
    wait_until_two_hold(ids)

    pause([queue.pk])
    wait_until(lambda: not jobs.filter(state=State.QUEUED).exists(), what="the buffer is empty")

    waiting = jobs.filter(state=State.READY)
    assert jobs.filter(state=State.RUNNING).count() == 2
    assert set(waiting.values_list("attempt", "worker")) == {(0, None)}
    gate.open()
    running = jobs.filter(state=State.RUNNING)
    wait_until(lambda: not running.exists())
    assert waiting.count() == 398
