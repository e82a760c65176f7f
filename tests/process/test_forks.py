"""Tasks that stop the event loop, or fork: the worker goes on, and no copy of it does."""

import os

import psutil
import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.states import State
from tests.testapp.models import Effect
from tests.testapp.tasks import async_add, noop

from .tasks import (
    exit_from_the_loop,
    fork_and_return,
    fork_and_return_from_a_coroutine,
    fork_and_wait_in_a_coroutine,
    fork_in_a_transaction,
    process_id,
    stop_the_loop,
    terminate_a_fork,
)
from .workers import Runner, Workers, wait_for_end, wait_for_state, wait_until


def in_group(runner: Runner) -> set[int]:
    """Return the ids of all processes of the runner, orphans included, that are alive."""
    alive = set()
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) != runner.process.pid:
                continue
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.add(process.pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return alive


@pytest.mark.parametrize("task", [stop_the_loop, exit_from_the_loop])
def test_coroutines_go_on_when_one_has_stopped_their_event_loop(workers: Workers, task):
    workers.start()
    before = wait_for_state(process_id.delay(), State.SUCCESS).result

    stopped = task.using(max_attempts=1).delay()
    later = async_add.using(max_attempts=1).delay(1, 2)

    assert wait_for_state(later, State.SUCCESS).result == 3
    assert wait_for_state(stopped, State.SUCCESS)
    assert wait_for_state(process_id.delay(), State.SUCCESS).result == before


@pytest.mark.parametrize(
    "task",
    [
        fork_and_return,
        fork_and_return_from_a_coroutine,
        fork_and_wait_in_a_coroutine,
        fork_in_a_transaction,
    ],
)
def test_copy_ends_when_a_task_has_forked_and_both_return(workers: Workers, task):
    runner = workers.start("--threads=2")
    before = in_group(runner)

    forked = task.using(max_attempts=1).delay()
    ids = [noop.using(max_attempts=1).delay().pk for _ in range(50)]
    ids += [async_add.using(max_attempts=1).delay(1).pk for _ in range(50)]

    assert wait_for_state(forked, State.SUCCESS)
    assert {job.state for job in wait_for_end(ids)} == {State.SUCCESS}
    assert Effect.objects.filter(job_id=forked.pk).count() == 1
    wait_until(lambda: in_group(runner) == before)
    assert "forked this process" in runner.output
    assert not Job.objects.unfinished().exists()


def test_worker_goes_on_when_a_task_terminates_a_fork_of_its_own(workers: Workers):
    runner = workers.start()
    before = in_group(runner)

    job = wait_for_state(terminate_a_fork.using(max_attempts=1).delay(), State.SUCCESS)

    assert job.result == "signal 15"
    wait_for_state(noop.delay(), State.SUCCESS)
    assert in_group(runner) == before
