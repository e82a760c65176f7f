"""A capped task never runs more often at once than it may, over all tenants and workers."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from functools import partial

import pytest
from django.db import connection

from django_tenantqueue import control
from django_tenantqueue.gate_keys import TASK, JobGates
from django_tenantqueue.models import Job, TaskControl
from django_tenantqueue.operations import task_gate
from django_tenantqueue.operations.gates import Sweep, keys_of, release
from django_tenantqueue.operations.task_control import delete_controls, rate_task
from django_tenantqueue.queries.claim import ClaimedJob
from django_tenantqueue.queries.locks import GATE_LOCK_CLASSES
from django_tenantqueue.worker.child import running_jobs
from tests.factories import cap_task, make_jobs, make_queue, pause_task, resume_task, states_of
from tests.testapp.tasks import noop

from .conftest import SECONDS
from .loops import turned_loop

NOOP = noop.name
NEVER = 0.001
"""A rate that brings nothing while a test runs."""


@pytest.fixture(autouse=True)
def forget_places():
    task_gate._places.clear()


def cap(num_slots: int) -> TaskControl:
    return cap_task(NOOP, num_slots)


def claim(worker, room: int = 10) -> list[ClaimedJob]:
    """Claim and take slots of the tasks, as a worker does; return what may start."""
    jobs = worker.claim(room)
    held = [job for job in jobs if job.is_controlled]
    free = [job for job in jobs if not job.is_controlled]
    taken = task_gate.take(worker.db, worker.id, held)
    if taken.left:  # a release that came too late for such a job has locked its row all the same
        worker.give_back(taken.left)
    return free + taken.granted


def end(worker, jobs: list[ClaimedJob]) -> None:
    """Store the ends of jobs and let others through, as a worker does."""
    worker.finish(jobs)
    release(worker.db, keys_of(JobGates.read(job.gates) for job in jobs if job.gates))


def test_cap_is_strict_when_many_race(threads, worker_factory):
    queues = [make_queue(num_slots=20) for _ in range(5)]
    ids = [job_id for queue in queues for job_id in make_jobs(queue, 40)]
    cap(3)
    workers = [worker_factory() for _ in range(6)]
    running: set[int] = set()
    most: list[int] = []
    guard = threading.Lock()
    all_done = threading.Event()

    def run(worker, seed: int) -> None:
        chance = random.Random(seed)
        while not all_done.is_set():
            jobs = claim(worker, chance.randint(1, 6))
            with guard:
                running.update(job.id for job in jobs)
                most.append(len(running))
            failed = [job for job in jobs if chance.random() < 0.1 and job.attempt < 4]
            with guard:
                running.difference_update(job.id for job in jobs)
            if failed:
                worker.fail(failed)
            end(worker, [job for job in jobs if job not in failed])
            if not jobs:
                Sweep().step("default")
            if not Job.objects.unfinished().exists():
                all_done.set()

    runs = [partial(run, worker, number) for number, worker in enumerate(workers)]
    threads.run_all(runs, 60, all_done)

    assert max(most) <= 3
    assert set(states_of(ids).values()) == {"success"}


each_limit = pytest.mark.parametrize(
    "limit", [partial(cap_task, NOOP, 1), partial(rate_task, NOOP, NEVER, 1)], ids=["cap", "rate"]
)


@each_limit
def test_slot_or_start_counts_when_its_taker_has_not_committed(worker_factory, limit):
    make_jobs(make_queue(), 1)
    make_jobs(make_queue(), 1)
    limit()
    first, second = worker_factory(), worker_factory()
    jobs, others = first.claim(1), second.claim(1)
    assert len(jobs) == len(others) == 1
    second.db.execute("SET lock_timeout = 0")

    with first.db.transaction():
        taken = task_gate.take(first.db, first.id, jobs)
        # the other one waits for 50 ms, then holds the job
        refused = task_gate.take(second.db, second.id, others)

    assert len(taken.granted) == 1
    assert (refused.granted, len(refused.held)) == ([], 1)


@each_limit
def test_slot_or_start_is_taken_in_a_later_snapshot_than_the_lock(
    worker_factory, threads, monkeypatch, limit
):
    monkeypatch.setattr("django_tenantqueue.operations.gate_transaction.LOCK_MILLISECONDS", 10_000)
    make_jobs(make_queue(), 1)
    make_jobs(make_queue(), 1)
    limit()
    first, second = worker_factory(), worker_factory()
    jobs, others = first.claim(1), second.claim(1)

    with first.db.transaction():
        taken = task_gate.take(first.db, first.id, jobs)
        waiting = threads.start(task_gate.take, second.db, second.id, others)
        wait_for_a_lock()
    refused = waiting.result(20)

    assert len(taken.granted) == 1
    assert refused.granted == []


def wait_for_a_lock() -> None:
    end_at = time.monotonic() + 10
    with connection.cursor() as cursor:
        while time.monotonic() < end_at:
            cursor.execute(
                "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
                "AND classid = "
                "hashtext(concat_ws(' ', %s, 'tenantqueue_tenantqueue'::regclass::oid))::oid",
                [GATE_LOCK_CLASSES[TASK]],
            )
            if cursor.rowcount:
                return
    raise AssertionError("nobody waits")


def test_claim_that_could_not_see_a_new_cap_is_counted_by_the_next_sweep(worker_factory):
    make_jobs(make_queue(), 3)
    before, after = worker_factory(), worker_factory()
    make_jobs(make_queue(), 3)

    with before.open_claim(2) as jobs:
        cap_task(NOOP, 2)
    # it could not see the cap
    assert [job.is_controlled for job in jobs] == [False, False]
    Sweep().step("default")

    assert claim(after) == []
    end(before, jobs[:1])
    after.claimer.places.forget_blocked()
    assert len(claim(after)) == 1


def test_running_job_is_counted_later_when_another_session_has_locked_its_row(
    worker, open_connection
):
    make_jobs(make_queue(), 1)
    (job,) = worker.claim(1)
    other = open_connection()

    with other.transaction():
        other.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [job.id])
        cap_task(NOOP, 1)
    assert Job.objects.get(pk=job.id).task_at is None
    Sweep().step("default")

    assert Job.objects.get(pk=job.id).task_at is not None


def test_job_gets_its_slot_when_a_sweep_has_counted_it_before(worker):
    make_jobs(make_queue(), 1)
    cap(1)
    jobs = worker.claim(1)

    Sweep().step("default")

    assert task_gate.take(worker.db, worker.id, jobs).granted


def test_job_whose_row_somebody_holds_is_given_back(worker, open_connection):
    make_jobs(make_queue(), 1)
    jobs = worker.claim(1)
    pause_task(NOOP)
    other = open_connection()

    with other.transaction():
        other.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [jobs[0].id])
        taken = task_gate.take(worker.db, worker.id, jobs)

    assert (taken.granted, taken.held, taken.left) == ([], [], jobs)
    assert worker.give_back(taken.left) == {jobs[0].id}


def test_lost_claim_takes_no_slot(worker_factory):
    make_jobs(make_queue(), 1)
    cap(1)
    first, second = worker_factory(), worker_factory()
    lost = first.claim(1)
    first.give_back(lost)
    jobs = second.claim(1)

    assert task_gate.take(first.db, first.id, lost).left == lost
    assert len(task_gate.take(second.db, second.id, jobs).granted) == 1


def test_job_claimed_when_the_pause_was_not_committed_goes_on(worker, open_connection):
    make_jobs(make_queue(), 2)
    other = open_connection()
    with other.transaction():
        other.execute(
            "INSERT INTO tenantqueue_taskcontrol (task, paused, created_at) "
            "VALUES (%s, true, now())",
            [NOOP],
        )
        assert len(claim(worker, 1)) == 1

    assert claim(worker, 1) == []


def test_loop_runs_others_while_a_task_is_paused_and_goes_on_when_it_is_resumed():
    queue = make_queue(num_slots=3)
    paused = make_jobs(queue, 30)
    others = make_jobs(queue, 5, task="other")
    pause_task(NOOP)
    with turned_loop(threads=4) as loop:
        seen: list[int] = []
        while len(seen) < len(others):
            running = loop.take(1)[0]
            seen.append(running.id)
            loop.end(running)
        assert sorted(seen) == others
        assert Counter(states_of(paused).values()) == {"held": 30}
        assert set(
            Job.objects.filter(pk__in=paused).values_list("attempt", "claim_seq", "worker")
        ) == {(0, 0, None)}

        resume_task(NOOP)
        for _ in paused:
            running = loop.take(1)[0]
            seen.append(running.id)
            loop.end(running)
        assert sorted(seen) == paused + others


def test_loop_starts_as_many_as_the_cap_says_and_the_next_at_once():
    queues = [make_queue(num_slots=9) for _ in range(3)]
    ids = [job_id for queue in queues for job_id in make_jobs(queue, 10)]
    cap(2)
    with turned_loop(threads=8) as loop:
        ended = 0
        while ended < len(ids):
            running = loop.take(1)
            assert len(running) <= 2
            for job in running:
                loop.end(job, gates=job._claimed.gates)
            ended += len(running)


def test_unstarted_job_is_given_back_when_its_task_is_paused(monkeypatch):
    monkeypatch.setattr(running_jobs, "STALE_SECONDS", 1000.0)
    (job_id,) = make_jobs(make_queue(), 1)
    with turned_loop() as loop:
        loop.executor.can_revoke = True
        loop.turn_until(lambda: loop.executor.jobs)

        pause_task(NOOP)

        loop.turn_until(lambda: states_of([job_id]) == {job_id: "ready"})
        loop.claim_loop.notified()
        loop.turn_until(lambda: states_of([job_id]) == {job_id: "held"})
    assert Job.objects.get(pk=job_id).attempt == 0


def test_claim_takes_a_turn_in_the_line_of_each_tenant(worker):
    """A tenant with a long line delays one with a short line by a turn."""
    big, small = make_queue(num_slots=50), make_queue(num_slots=50)
    cap(1)
    make_jobs(big, 60)
    granted = claim(worker, 100)
    while claim(worker, 100):
        pass
    make_jobs(small, 1)
    order = []
    for _ in range(6):
        end(worker, granted)
        granted = []
        for _ in range(4):
            granted += claim(worker, 100)
        order += [job.queue_id for job in granted]
    assert small.pk in order[:3]


def test_controls_are_set_whoever_deletes_them_meanwhile(threads):
    """A deletion comes before a change or after it: each change finds its control, or makes it."""
    over = threading.Event()

    def delete() -> None:
        while not over.is_set():
            delete_controls(TaskControl.objects.values_list("pk", flat=True))

    def change(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(60):
            match chance.randrange(3):
                case 0:
                    done = control.pause(task=NOOP)
                    assert done.changed or done.unchanged
                case 1:
                    done = control.tune(task=NOOP, num_slots=7)
                    assert done.changed or done.unchanged
                case 2:
                    control.resume(task=NOOP)

    deleting = threads.start(delete)
    changing = [threads.start(change, seed) for seed in range(4)]
    try:
        for future in changing:
            future.result(SECONDS)
    finally:
        over.set()
    deleting.result(SECONDS)
