"""The rate of a task is kept by all workers together, and reached without a sweep."""

from __future__ import annotations

from functools import partial
from threading import Event

import pytest

from django_tenantqueue.models import Job, TaskControl, TaskRate
from django_tenantqueue.operations import task_gate
from django_tenantqueue.operations.gates import Sweep, release
from django_tenantqueue.operations.task_control import rate_task, tune_control
from tests.factories import FakeWorker, cap_task, make_jobs, make_queue, states_of
from tests.intervals import breaches_of_rate

from .loops import turned_loop
from .test_task_control import NEVER, NOOP, claim, end, forget_places

__all__ = ["forget_places"]


def starts_of(ids: list[int]) -> list:
    """Return when jobs have started, by the database's clock."""
    rows = Job.objects.filter(pk__in=ids, attempt__gt=0)
    return list(rows.values_list("queued_at", flat=True))


@pytest.mark.heavy
@pytest.mark.parametrize(("rate", "burst"), [(100.0, 10), (25.0, 1)])
def test_rate_is_kept_when_many_workers_race(worker_factory, threads, rate, burst):
    ids = [job_id for _ in range(3) for job_id in make_jobs(make_queue(num_slots=20), 12)]
    rate_task(NOOP, rate, burst)
    all_done = Event()

    def run(worker: FakeWorker, room: int) -> None:
        while not all_done.is_set():
            jobs = claim(worker, room)
            end(worker, jobs)
            if not jobs:
                Sweep().step("default")
            if not Job.objects.unfinished().exists():
                all_done.set()

    workers = [worker_factory() for _ in range(4)]
    runs = [partial(run, worker, room) for worker, room in zip(workers, (1, 2, 5, 20), strict=True)]
    threads.run_all(runs, 60, all_done)

    assert set(states_of(ids).values()) == {"success"}
    assert breaches_of_rate(starts_of(ids), rate, burst) == []


def test_nothing_is_spent_when_the_start_is_undone(worker):
    make_jobs(make_queue(), 1)
    rate_task(NOOP, NEVER, 1)
    jobs = worker.claim(1)

    with worker.db.transaction(force_rollback=True):
        assert task_gate.take(worker.db, worker.id, jobs).granted

    assert task_gate.take(worker.db, worker.id, jobs).granted


def test_claim_that_could_not_see_a_new_rate_starts_and_the_next_one_counts(worker_factory):
    make_jobs(make_queue(), 3)
    before, after = worker_factory(), worker_factory()
    make_jobs(make_queue(), 3)

    with before.open_claim(2) as jobs:
        rate_task(NOOP, NEVER, 1)
    # it could not see the rate
    assert [job.is_controlled for job in jobs] == [False, False]

    assert len(claim(after)) == 1
    assert claim(after) == []


def test_start_is_spent_only_when_it_was_taken_before_the_worker_died(worker_factory):
    """A job that was claimed, and given back by a rescue, has started or not."""
    make_jobs(make_queue(), 1)
    rate_task(NOOP, NEVER, 1)
    dead, next_one = worker_factory(), worker_factory()

    dead.give_back(dead.claim(1))
    assert not TaskRate.objects.exists()
    dead.give_back(claim(dead, 1))

    assert claim(next_one) == []
    assert TaskRate.objects.get().debt == 1.0


def test_loop_starts_held_jobs_when_the_rate_brings_starts():
    """The worker that made the last start makes the next one: no sweep runs here."""
    queue = make_queue(num_slots=3)
    ids = make_jobs(queue, 8)
    others = make_jobs(queue, 4, task="other")
    rate_task(NOOP, 50.0, 1)
    order = []
    with turned_loop(threads=4) as loop:
        while len(order) < len(ids) + len(others):
            for running in loop.take(1):
                order.append(running.id)
                loop.end(running, gates=running._claimed.gates)

    assert [job_id for job_id in order if job_id in ids] == ids
    assert order.index(others[-1]) < order.index(ids[-1])
    assert breaches_of_rate(starts_of(ids), 50.0, 1) == []


def test_loop_starts_a_job_that_came_while_no_start_was_left():
    rate_task(NOOP, 10.0, 1)
    ids = make_jobs(make_queue(), 1)
    with turned_loop() as loop:
        for _ in range(4):
            for running in loop.take(1):
                loop.end(running, gates=running._claimed.gates)
            ids += make_jobs(make_queue(), 1)
            loop.claim_loop.notified()

    assert breaches_of_rate(starts_of(ids), 10.0, 1) == []


def test_other_worker_starts_the_next_one_when_that_of_the_last_start_has_died():
    ids = make_jobs(make_queue(), 3)
    rate_task(NOOP, 100.0, 1)
    with turned_loop() as dead:
        (first,) = dead.take(1)
    with turned_loop() as loop:
        while not loop.executor.jobs:
            Sweep().step("default")
            loop.claim_loop.notified()
            loop.claim_loop.run_once()
        (second,) = loop.executor.jobs

    assert [first.id, second.id] == ids[:2]


def test_draining_worker_does_not_wait_for_a_start():
    make_jobs(make_queue(), 2)
    rate_task(NOOP, NEVER, 1)
    with turned_loop() as loop:
        (running,) = loop.take(1)
        loop.end(running, gates=running._claimed.gates)
        loop.claim_loop.claimed_jobs.draining = True

        loop.turn_until(loop.claim_loop.drained)


def test_cap_holds_while_a_rate_brings_starts():
    ids = make_jobs(make_queue(num_slots=9), 6)
    rate_task(NOOP, 1000.0, 1000)
    cap_task(NOOP, 2)
    ended = 0
    with turned_loop(threads=8) as loop:
        while ended < len(ids):
            running = loop.take(1)
            assert len(running) <= 2
            for job in running:
                loop.end(job, gates=job._claimed.gates)
            ended += len(running)


def test_rate_is_edited_from_none_and_back_while_a_worker_runs():
    queue = make_queue(num_slots=50)
    ids = make_jobs(queue, 30)
    control: TaskControl = cap_task(NOOP, None)
    with turned_loop(threads=4) as loop:
        loop.take(1)
        tune_control(control.pk, max_per_second=5.0, burst=1)
        done = len(starts_of(ids))
        while loop.executor.jobs:
            loop.end(loop.executor.jobs[0], gates=loop.executor.jobs[0]._claimed.gates)
        loop.take(1)
        assert len(starts_of(ids)) == done + 1

        tune_control(control.pk, max_per_second=None, burst=None)
        while len(starts_of(ids)) < len(ids):
            for running in loop.take(1):
                loop.end(running, gates=running._claimed.gates)


def test_job_that_is_set_aside_when_its_start_comes_due_is_released_at_once(worker):
    """No timer is left then: the one of the last start has found no line."""
    rate_task(NOOP, NEVER, 1)
    make_jobs(make_queue(), 1)
    assert len(claim(worker)) == 1
    (late,) = make_jobs(make_queue(), 1)
    assert claim(worker) == []

    keys = worker.claimer.passed_over.step(worker.db)
    TaskRate.objects.update(debt=0.0)

    assert release(worker.db, keys).ready == 1
    assert states_of([late]) == {late: "ready"}
