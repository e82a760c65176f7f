"""A backlog of a paused or full task is set aside in bulk and holds up nothing behind it."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection

from django_tenantqueue.models import Job, QueueRate
from django_tenantqueue.operations import passed_over, task_gate
from django_tenantqueue.operations.gates import Sweep
from django_tenantqueue.queries import claim as claim_queries
from tests.factories import cap_task, make_jobs, make_queue, pause_task, resume_task, states_of
from tests.testapp.tasks import noop

from .loops import FakeLoop, turned_loop

NOOP = noop.name


@pytest.fixture
def small_steps(monkeypatch):
    """Pass over ten jobs in a claim, read 50 ahead in a step, and move five."""
    monkeypatch.setattr(claim_queries, "MOST_PASSED", 10)
    monkeypatch.setattr(passed_over, "MOST_READ", 50)
    monkeypatch.setattr(passed_over, "BATCH", 5)


def untouched(ids: list[int]) -> bool:
    """Whether no claim has taken any of these jobs."""
    found = Job.objects.filter(pk__in=ids).values_list("attempt", "claim_seq").distinct()
    return list(found) == [(0, 0)]


def run_one(loop: FakeLoop) -> int:
    (running,) = loop.take(1)
    loop.end(running)
    return running.id


@pytest.mark.parametrize("priority", [240, 300])
def test_job_starts_behind_a_long_backlog_of_a_paused_task(priority):
    queue = make_queue(num_slots=1, max_per_second=0.2, burst=1)
    paused = make_jobs(queue, 10_000)
    (other,) = make_jobs(queue, 1, priority=priority, task="other")
    pause_task(NOOP)

    with turned_loop(threads=4) as loop:
        assert run_one(loop) == other

        assert QueueRate.objects.get(queue=queue).debt == 1  # one start in all
        moved = Job.objects.filter(pk__in=paused).exclude(state="ready")
        loop.turn_until(lambda: moved.count() == 10_000, seconds=60)
    assert untouched(paused)
    assert Counter(Job.objects.filter(pk__in=paused).values_list("held_by", flat=True)) == {
        "task": 10_000
    }


def test_claims_begin_ahead_of_what_is_being_moved(small_steps):
    queue = make_queue()
    paused = make_jobs(queue, 400)
    (other,) = make_jobs(queue, 1, task="other")
    pause_task(NOOP)

    with turned_loop(threads=1) as loop:
        assert run_one(loop) == other

        left = Job.objects.filter(pk__in=paused, state="ready").count()
        assert left > 300
        assert loop.claim_loop.claimer.passed_over.start_keys


def test_job_that_comes_back_to_the_front_is_found(small_steps):
    queue = make_queue()
    (early,) = make_jobs(queue, 1, task="other", state="scheduled")
    make_jobs(queue, 400)
    (other,) = make_jobs(queue, 1, task="other")
    pause_task(NOOP)

    with turned_loop(threads=1) as loop:
        assert run_one(loop) == other
        Job.objects.filter(pk=early).update(state="ready")
        loop.claim_loop.next_claim.hurry()
        assert run_one(loop) == early


def test_jobs_start_in_order_when_the_task_is_resumed_before_all_were_moved(small_steps):
    queue = make_queue(num_slots=1)
    paused = make_jobs(queue, 60)
    (other,) = make_jobs(queue, 1, task="other")
    pause_task(NOOP)

    with turned_loop(threads=1) as loop:
        assert run_one(loop) == other
        assert "ready" in states_of(paused).values()
        resume_task(NOOP)
        while Sweep().step("default"):
            pass

        assert [run_one(loop) for _ in paused] == paused


def test_job_starts_behind_the_backlog_of_a_full_task():
    busy, queue = make_queue(), make_queue(num_slots=1)
    (running,) = make_jobs(busy, 1, state="running")
    waiting = make_jobs(queue, 2000)
    (other,) = make_jobs(queue, 1, task="other")
    cap_task(NOOP, 1)

    with turned_loop(threads=4) as loop:
        assert run_one(loop) == other
        assert untouched(waiting)

        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM tenantqueue_job_hot WHERE id = %s", [running])
        Sweep().step("default")
        loop.claim_loop.next_claim.hurry()
        assert run_one(loop) == waiting[0]


def test_other_task_of_a_user_starts_while_one_has_its_cap_elsewhere(settings):
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "DEFAULT_USER_SLOTS": 2}
    busy, queue = make_queue(), make_queue()
    make_jobs(busy, 1, state="running")
    capped = make_jobs(
        queue, 10, state="held", held_by="limit_user", limit_user="t/u", session_key=None
    )
    (other,) = make_jobs(
        queue,
        1,
        state="held",
        held_by="limit_user",
        limit_user="t/u",
        session_key=None,
        task="other",
    )
    cap_task(NOOP, 1)

    Sweep().step("default")

    assert not Job.objects.filter(pk__in=capped, held_by="limit_user").exists()
    with turned_loop(threads=4) as loop:
        assert run_one(loop) == other
    assert untouched(capped)


def test_start_is_given_back_to_the_rate_when_the_task_has_no_slot(worker):
    queue = make_queue(max_per_second=1.0, burst=5)
    make_jobs(queue, 3)
    jobs = worker.claim(3)
    assert len(jobs) == 3
    assert QueueRate.objects.get(queue=queue).debt == 3
    pause_task(NOOP)

    task_gate.take(worker.db, worker.id, jobs)

    assert QueueRate.objects.get(queue=queue).debt == 0


def test_no_claim_takes_them(manner, worker):
    queue = make_queue()
    paused = make_jobs(queue, 30)
    (other,) = make_jobs(queue, 1, task="other")
    pause_task(NOOP)

    assert [job.id for job in worker.claim()] == [other]
    assert untouched(paused)
