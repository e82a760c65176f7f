"""Time limits: told to stop first, then the process is killed, and its neighbours lose nothing."""

import os
import signal
import time

import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.operations.control import cancel
from django_tenantqueue.states import State
from tests.testapp.tasks import noop

from .tasks import async_hold, block_the_loop, hold, refuse_to_stop
from .workers import Gate, Workers, wait_for_end, wait_for_state, wait_until

QUICK = {"CANCEL_GRACE": 0.2, "HARD_TIMEOUT_GRACE": 0.5}


def classes_of(job: Job) -> list[str]:
    """Return the classes of the job's errors, the first one first."""
    return [error["class"].rpartition(".")[2] for error in job.refresh().errors or []]


def test_coroutine_that_blocks_the_loop_is_stopped_when_its_time_is_over(workers: Workers):
    runner = workers.start()
    before = runner.children()[0].pid
    job = block_the_loop.using(timeout=0.3, max_attempts=1).delay(60.0)

    wait_for_state(job, State.ERROR)

    assert classes_of(job) == ["TimeLimitExceeded"]
    wait_for_end(noop.enqueue_many([()] * 5))
    assert runner.children()[0].pid == before


@pytest.mark.parametrize("options", [{"hard_timeout": 0.8}, {"timeout": 0.3}])
def test_process_is_killed_and_neighbours_lose_nothing_when_a_hard_limit_passes(
    workers: Workers, gate: Gate, options
):
    runner = workers.start(settings=QUICK)
    before = runner.children()[0].pid
    neighbours = [hold.using(max_attempts=1).delay(str(gate)) for _ in range(2)]
    neighbours.append(async_hold.using(max_attempts=1).delay(str(gate)))
    gate.wait_for(*neighbours)
    job = refuse_to_stop.using(max_attempts=1, **options).delay(str(gate))

    wait_for_state(job, State.ERROR)
    gate.open()

    assert classes_of(job) == ["HardTimeLimitExceeded"]
    assert "hard time limit" in job.last_error["message"]
    for neighbour in neighbours:
        wait_for_state(neighbour, State.SUCCESS)
        assert (neighbour.attempt, neighbour.errors) == (1, None)
    assert runner.children()[0].pid != before


def test_job_runs_again_after_a_pause_when_its_process_was_killed_for_it(
    workers: Workers, gate: Gate
):
    workers.start(settings={**QUICK, "BACKOFF_BASE": 0.2})
    job = refuse_to_stop.using(max_attempts=2, hard_timeout=0.4).delay(str(gate))

    wait_for_state(job, State.ERROR)

    assert job.attempt == 2
    assert classes_of(job) == ["HardTimeLimitExceeded"] * 2
    assert job.crashes == 0


def test_hard_limit_holds_when_the_process_is_stopped(workers: Workers, gate: Gate):
    runner = workers.start(settings=QUICK)
    job = hold.using(max_attempts=1, hard_timeout=3.0).delay(str(gate))
    gate.wait_for(job)

    os.kill(runner.children()[0].pid, signal.SIGSTOP)

    wait_for_state(job, State.ERROR)
    assert classes_of(job) == ["HardTimeLimitExceeded"]


def test_job_keeps_its_slot_when_its_process_is_stopped_for_a_while(workers: Workers, gate: Gate):
    runner = workers.start()
    idle = workers.start()
    job = hold.delay(str(gate))
    gate.wait_for(job)
    held_by = job.refresh().worker_id
    (pid,) = [row.pid for row in (*runner.rows(), *idle.rows()) if row.pk == held_by]

    os.kill(pid, signal.SIGSTOP)
    time.sleep(5)  # longer than two looks of whoever rescues
    assert (job.refresh().worker_id, job.claim_seq) == (held_by, 1)
    os.kill(pid, signal.SIGCONT)
    gate.open()

    wait_for_state(job, State.SUCCESS)
    assert job.attempt == 1


def test_process_is_killed_when_a_cancelled_task_does_not_heed_it(workers: Workers, gate: Gate):
    runner = workers.start(settings=QUICK)
    before = runner.children()[0].pid
    job = refuse_to_stop.delay(str(gate))
    gate.wait_for(job)
    wait_for_state(job, State.RUNNING)

    cancel([job.pk])

    wait_for_state(job, State.CANCELLED)
    assert "did not stop" in job.last_error["message"]
    wait_until(lambda: [c.pid for c in runner.children()] not in ([], [before]))


def test_nobody_is_killed_when_there_is_no_grace(workers: Workers, gate: Gate):
    workers.start(settings={"HARD_TIMEOUT_GRACE": None})
    job = refuse_to_stop.using(timeout=0.2, max_attempts=1).delay(str(gate), 2.0)

    wait_for_state(job, State.SUCCESS)

    assert job.attempt == 1
