"""A worker that is told to stop costs no job an attempt, and loses none."""

import signal

import pytest
from django.db import transaction

from django_tenantqueue.models import Change, Job, Worker
from django_tenantqueue.states import State
from tests.testapp.tasks import noop

from .tasks import async_hold, block_alone, hold, work_or_hold
from .workers import (
    Gate,
    Workers,
    make_queue,
    wait_for_end,
    wait_for_state,
    wait_until,
    wait_until_two_hold,
)


def nothing_is_left() -> bool:
    """Whether no job holds a slot, no worker is registered, and none is said to have died."""
    nobody = not Job.objects.active().exists() and not Worker.objects.exists()
    return nobody and not Change.objects.filter(action=Change.Action.DIE).exists()


@pytest.mark.parametrize("to_all", [False, True], ids=["supervisor", "every process"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_running_jobs_succeed_when_they_end_within_the_timeout(
    workers: Workers, gate: Gate, number: signal.Signals, to_all: bool
):
    runner = workers.start(processes=2)
    jobs = [hold.delay(str(gate)), async_hold.delay(str(gate))]
    gate.wait_for(*jobs)

    send = runner.send_all if to_all else runner.send  # CTRL-C and systemd signal them all
    send(number)
    wait_until(lambda: number.name in runner.output, what="the supervisor has said so")
    gate.open()

    assert runner.end() == 0
    assert [(job.refresh().state, job.attempt) for job in jobs] == [(State.SUCCESS, 1)] * 2
    assert nothing_is_left()


def test_running_jobs_succeed_when_their_child_was_signalled_before(workers: Workers, gate: Gate):
    runner = workers.start("--no-maintenance", processes=2)
    job = hold.delay(str(gate))
    gate.wait_for(job)
    children = runner.children()

    for child in children:
        child.send_signal(signal.SIGTERM)
    wait_until(lambda: len(set(children) & set(runner.children())) == 1, what="the idle one ended")
    runner.send(signal.SIGTERM)
    wait_until(lambda: runner.output.count("stop requested") == 3, what="the other is told again")
    gate.open()

    assert runner.end() == 0
    assert (job.refresh().state, job.attempt) == (State.SUCCESS, 1)
    assert nothing_is_left()


def test_running_jobs_are_given_back_when_the_timeout_is_over(workers: Workers, gate: Gate):
    runner = workers.start("--shutdown-timeout=0.5")
    jobs = [hold.delay(str(gate)), async_hold.delay(str(gate))]
    gate.wait_for(*jobs)

    runner.send(signal.SIGTERM)

    assert runner.end() == 0
    for job in jobs:
        assert (job.refresh().state, job.attempt, job.worker_id) == (State.READY, 0, None)
        assert (job.queued_at, job.started_at) == (None, None)
    assert nothing_is_left()


def test_jobs_run_elsewhere_when_they_were_given_back(workers: Workers, gate: Gate):
    first = workers.start("--shutdown-timeout=0")
    job = hold.using(max_attempts=1).delay(str(gate))
    gate.wait_for(job)
    claim_seq = job.refresh().claim_seq
    workers.start()

    first.send(signal.SIGTERM)
    first.end()
    wait_until(lambda: job.refresh().claim_seq > claim_seq)
    gate.open()

    wait_for_state(job, State.SUCCESS)
    assert (job.attempt, job.result) == (1, "through the gate")


def test_job_begins_elsewhere_when_the_process_that_ran_it_is_gone(workers: Workers, gate: Gate):
    first = workers.start("--shutdown-timeout=1")
    job = block_alone.using(max_attempts=1).delay(str(gate))
    gate.wait_for(job)
    workers.start()

    first.send(signal.SIGTERM)
    wait_until(lambda: "stop requested" in first.output)
    gate.open()  # from now on nothing ends the event loop

    wait_for_state(job, State.SUCCESS)
    assert (job.attempt, job.result) == (1, [])
    assert first.end() == 0
    assert "stops; still running and returned: 1 job" in first.output


def test_running_jobs_are_given_back_when_a_second_signal_comes(workers: Workers, gate: Gate):
    runner = workers.start(processes=2)  # the timeout would be 30 s
    jobs = [hold.delay(str(gate)), async_hold.delay(str(gate))]
    gate.wait_for(*jobs)

    runner.send(signal.SIGTERM)
    wait_until(lambda: "SIGTERM" in runner.output)
    runner.send(signal.SIGTERM)

    assert runner.end(timeout=10) == 0
    assert [(job.refresh().state, job.attempt) for job in jobs] == [(State.READY, 0)] * 2
    assert nothing_is_left()


def test_buffered_jobs_are_given_back_at_once_when_the_worker_is_told_to_stop(
    workers: Workers, gate: Gate
):
    make_queue("acme", num_slots=1000)
    runner = workers.start("--threads=2")
    # Fast jobs make the worker claim ahead; then two of them hold up all behind them.
    ids = work_or_hold.using(tenant="acme").enqueue_many([(str(gate), n) for n in range(1000)])
    running = Job.objects.filter(pk__in=ids, final=False, state=State.RUNNING)
    queued = Job.objects.filter(pk__in=ids, final=False, state=State.QUEUED)
    wait_until_two_hold(ids)

    runner.send(signal.SIGTERM)
    wait_until(lambda: not queued.exists(), what="the buffer is given back")

    assert running.count() == 2
    waiting = Job.objects.filter(pk__in=ids, final=False, state=State.READY)
    assert set(waiting.values_list("attempt", flat=True)) == {0}
    gate.open()
    assert runner.end() == 0
    assert nothing_is_left()


def test_buffered_jobs_are_given_back_when_there_is_no_time_at_all(workers: Workers, gate: Gate):
    make_queue("acme", num_slots=1000)
    runner = workers.start("--threads=2", "--shutdown-timeout=0")
    ids = work_or_hold.using(tenant="acme").enqueue_many([(str(gate), n) for n in range(1000)])
    done = Job.objects.filter(pk__in=ids, final=True, state=State.SUCCESS)
    wait_until(lambda: done.count() == 200)

    runner.send(signal.SIGTERM)

    assert runner.end() == 0
    waiting = Job.objects.filter(pk__in=ids, final=False, state=State.READY, attempt=0)
    assert waiting.count() == 800
    assert nothing_is_left()


def test_other_jobs_are_given_back_when_the_row_of_one_is_locked(workers: Workers, gate: Gate):
    runner = workers.start("--shutdown-timeout=0")
    jobs = [hold.delay(str(gate)) for _ in range(4)]
    gate.wait_for(*jobs)

    with transaction.atomic():
        Job.objects.select_for_update().filter(final=False).get(pk=jobs[1].pk)
        runner.send(signal.SIGTERM)
        assert runner.end() == 0

    states = [job.refresh().state for job in jobs]
    assert states[0] == states[2] == states[3] == State.READY
    assert states[1] in (State.QUEUED, State.RUNNING)  # for rescue, as is the row of its worker
    assert Worker.objects.count() == 1


@pytest.mark.heavy
def test_no_job_is_left_behind_when_workers_are_stopped_under_load(workers: Workers):
    ids: list[int] = []
    left = []
    for _ in range(3):
        for number in range(10):
            ids += noop.using(tenant=f"tenant {number}").enqueue_many([()] * 600)
        done = Job.objects.filter(pk__in=ids, final=True)
        before = done.count()
        runner = workers.start("--shutdown-timeout=10", processes=2)
        wait_until(lambda done=done, before=before: done.count() >= before + 100)
        runner.send(signal.SIGTERM)
        assert runner.end() == 0
        assert nothing_is_left()
        left.append(len(ids) - done.count())

    assert max(left) > 0
    workers.start(processes=2)
    jobs = wait_for_end(ids)
    assert {(job.state, job.attempt) for job in jobs} == {(State.SUCCESS, 1)}


@pytest.mark.heavy
def test_worker_ends_when_it_is_stopped_while_it_starts(workers: Workers):
    for delay in range(3):
        runner = workers.launch("--processes=4", "--shutdown-timeout=20")
        wait_until(lambda runner=runner, delay=delay: len(runner.children()) > delay)
        runner.send(signal.SIGTERM)

        assert runner.end(timeout=10) == 0
        assert nothing_is_left()
