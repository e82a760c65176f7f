"""Children that grow old or large make room for new ones, or are killed."""

import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.states import State
from tests.testapp.tasks import noop

from .tasks import die, hold, leak, process_id, swallow
from .workers import Gate, Workers, make_queue, wait_for_end, wait_for_state, wait_until


def results_of(ids: list[int]) -> list[object]:
    return [job.result for job in Job.objects.filter(pk__in=ids)]


def test_child_is_replaced_when_it_has_run_its_number_of_jobs(workers: Workers):
    make_queue("acme", num_slots=2)
    runner = workers.start("--max-jobs=20", "--threads=2")

    ids = process_id.using(tenant="acme").enqueue_many([()] * 100)

    jobs = wait_for_end(ids)
    assert {job.state for job in jobs} == {State.SUCCESS}
    assert {job.attempt for job in jobs} == {1}
    assert len(set(results_of(ids))) >= 3
    wait_until(lambda: len(runner.children()) == 1, what="one child is left")


@pytest.mark.heavy
def test_all_jobs_succeed_when_each_leaks(workers: Workers):
    make_queue("acme", num_slots=2)
    runner = workers.start("--max-rss=300", "--kill-rss=2000", "--threads=2")

    ids = leak.using(tenant="acme").enqueue_many([(50,)] * 200)

    jobs = wait_for_end(ids, timeout=120)
    assert {job.state for job in jobs} == {State.SUCCESS}
    assert {job.attempt for job in jobs} == {1}
    assert len(set(results_of(ids))) >= 20
    assert "drains and is replaced: it takes" in runner.output


def test_new_child_takes_jobs_while_the_old_one_ends_what_it_runs(workers: Workers, gate: Gate):
    make_queue("acme", num_slots=20)
    runner = workers.start("--max-jobs=5", "--threads=4")
    old = runner.children()[0].pid
    held = hold.using(tenant="acme").delay(str(gate))
    gate.wait_for(held)

    wait_for_end(noop.using(tenant="acme").enqueue_many([()] * 30))

    wait_until(lambda: len(runner.children()) == 2, what="there is a successor")
    assert old in [child.pid for child in runner.children()]
    gate.open()
    wait_for_state(held, State.SUCCESS)
    wait_until(lambda: old not in [child.pid for child in runner.children()])


def test_job_ends_with_a_memory_reason_when_it_takes_all_there_is(workers: Workers, gate: Gate):
    make_queue("acme", num_slots=4)
    workers.start("--kill-rss=400", "--threads=4", settings={"BACKOFF_BASE": 0.2})
    neighbours = hold.using(tenant="acme", max_attempts=5).enqueue_many([(str(gate),)] * 2)

    job = swallow.using(tenant="acme", max_attempts=3).delay(str(gate))

    wait_for_state(job, State.ERROR, timeout=40)
    gate.open()
    assert job.last_error["class"].endswith("MemoryLimitExceeded")
    assert "above its limit of 400 MB" in job.last_error["message"]
    assert {job.state for job in wait_for_end(neighbours)} == {State.SUCCESS}


@pytest.mark.parametrize("attempts", [1, 3])
def test_job_that_kills_its_worker_ends_in_error_and_the_fleet_lives(
    workers: Workers, gate: Gate, attempts
):
    workers.start("--threads=4", processes=2, settings={"BACKOFF_BASE": 0.2})

    job = die.using(max_attempts=attempts).delay(str(gate))

    wait_for_state(job, State.ERROR)
    assert (job.attempt, job.crashes) == (attempts, attempts)
    assert "SIGKILL" in job.last_error["message"]
    ended = wait_for_end(noop.enqueue_many([()] * 50))
    assert {(job.state, job.attempt) for job in ended} == {(State.SUCCESS, 1)}
