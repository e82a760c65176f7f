"""Running jobs that are cancelled, and jobs that run for too long."""

import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.operations.control import cancel
from django_tenantqueue.states import State
from tests.testapp.tasks import async_sleep, noop, spin
from tests.timing import assert_within

from .tasks import cancel_itself, hold, hold_and_look, work_or_hold
from .workers import (
    Gate,
    Workers,
    make_queue,
    wait_for_end,
    wait_for_state,
    wait_until,
    wait_until_two_hold,
)

QUICK = {"CANCEL_GRACE": 0.3}
PATIENT = {"CANCEL_GRACE": 1000.0}


def error_of(job: Job) -> str:
    return job.refresh().last_error["class"].rpartition(".")[2]


def test_a_task_stops_when_it_looks_after_being_cancelled(workers: Workers, gate: Gate):
    workers.start(settings=PATIENT)
    job, other = hold_and_look.delay(str(gate)), hold.delay(str(gate))
    gate.wait_for(job, other)

    assert cancel([job.pk]) == ([], [job.pk])

    wait_for_state(job, State.CANCELLED)
    assert error_of(job) == "Cancelled"
    assert job.attempt == 1
    gate.open()
    wait_for_state(other, State.SUCCESS)


def test_a_task_is_interrupted_when_it_does_not_look(workers: Workers):
    workers.start("--threads=2", settings=QUICK)
    job = spin.delay(100)
    wait_for_state(job, State.RUNNING)

    cancel([job.pk])

    wait_for_state(job, State.CANCELLED)
    assert error_of(job) == "Cancelled"
    wait_for_end(noop.enqueue_many([()] * 20))  # both threads are there again


def test_a_coroutine_is_cancelled_when_it_does_not_look(workers: Workers):
    workers.start(settings=QUICK)
    job, other = async_sleep.delay(100), async_sleep.delay(3)
    wait_for_state(job, State.RUNNING)

    cancel([job.pk])

    wait_for_state(job, State.CANCELLED)
    assert error_of(job) == "Cancelled"
    wait_for_state(other, State.SUCCESS)


@pytest.mark.heavy
def test_a_job_never_runs_when_it_is_cancelled_in_the_buffer(workers: Workers, gate: Gate):
    make_queue("acme", num_slots=1000)
    workers.start("--threads=2", settings=PATIENT)
    ids = work_or_hold.using(tenant="acme").enqueue_many([(str(gate), n) for n in range(600)])
    jobs = Job.objects.filter(pk__in=ids)
    wait_until_two_hold(ids)
    waiting = list(jobs.filter(final=False).exclude(state=State.RUNNING).order_by("pk"))

    cancelled, asked = cancel(job.pk for job in waiting)

    wait_until(lambda: jobs.filter(state=State.CANCELLED).count() == len(waiting))

    assert len(cancelled) + len(asked) == len(waiting) == 398
    assert not any(gate.started(job) for job in waiting)


@pytest.mark.parametrize("how", ["error", "postpone"])
def test_a_job_does_not_run_again_when_it_was_cancelled_before_it_failed(workers: Workers, how):
    workers.start(settings=PATIENT)
    job = cancel_itself.delay(how)
    other = noop.delay()

    wait_for_state(job, State.CANCELLED)

    assert job.attempt == 1
    assert error_of(job) == {"error": "ValueError", "postpone": "Cancelled"}[how]
    wait_for_state(other, State.SUCCESS)


@pytest.mark.parametrize("task", [spin, async_sleep], ids=["thread", "coroutine"])
def test_a_job_ends_in_error_when_its_timeout_is_over(workers: Workers, task):
    workers.start("--threads=1")
    job = task.using(timeout=0.3, max_attempts=1).delay(100)
    other = task.using(timeout=30).delay(0.4)

    wait_for_state(job, State.ERROR)

    assert error_of(job) == "TimeLimitExceeded"
    assert job.run_duration.total_seconds() >= 0.3
    assert_within(5.0, job.run_duration)
    wait_for_state(other, State.SUCCESS)


@pytest.mark.heavy
def test_a_job_is_tried_again_when_its_timeout_is_over(workers: Workers):
    workers.start(settings={"BACKOFF_BASE": 0.05})
    job = spin.using(timeout=0.2, max_attempts=2).delay(100)

    wait_for_state(job, State.ERROR)

    assert job.attempt == 2
    assert [error["class"].rpartition(".")[2] for error in job.errors] == ["TimeLimitExceeded"] * 2
