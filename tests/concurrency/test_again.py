"""A worker looks again at once when there may be more, and else spares itself a claim."""

from __future__ import annotations

import time

import pytest

from django_tenantqueue.operations.claim import Verdict
from django_tenantqueue.worker.child import next_claim, running_jobs
from tests.concurrency.loops import turned_loop
from tests.factories import make_job, make_jobs, make_queue


@pytest.mark.parametrize(
    ("queues", "slots", "jobs", "taken", "verdict"),
    [
        pytest.param(1, 10, 3, 3, Verdict.LATER, id="the only queue gave all it had"),
        pytest.param(3, 2, 5, 6, Verdict.LATER, id="all queues are full now"),
        pytest.param(1, 10, 8, 8, Verdict.AGAIN, id="the room was filled"),
    ],
)
def test_look_follows_at_once_when_there_may_be_more(worker, queues, slots, jobs, taken, verdict):
    for _ in range(queues):
        make_jobs(make_queue(num_slots=slots), jobs)

    assert len(worker.claim(8)) == taken

    assert worker.verdict is verdict


def test_look_follows_at_once_when_a_queue_got_its_share_only(worker):
    big, small = make_queue(num_slots=100), make_queue(num_slots=100)
    ids = make_jobs(big, 20) + make_jobs(small, 1)

    taken = worker.claim(8)

    assert len(taken) < 8
    assert worker.verdict is Verdict.AGAIN
    assert len(taken) + len(worker.claim(100)) == len(ids)


def test_look_follows_at_once_when_more_queues_are_ready_than_it_locks(worker):
    ids = [make_job().pk for _ in range(5)]

    taken = worker.claim(4)

    assert worker.verdict is Verdict.AGAIN
    assert len(taken) + len(worker.claim(4)) == len(ids)


def test_look_follows_at_once_when_a_queue_was_in_others_hands(worker, open_connection):
    make_job()
    other = make_job()
    holder = open_connection()
    with holder.transaction():
        holder.execute(
            "SELECT FROM tenantqueue_tenantqueue WHERE id = %s FOR UPDATE", [other.queue_id]
        )
        assert len(worker.claim(8)) == 1

    assert worker.verdict is Verdict.AGAIN


def test_loop_does_not_claim_at_once_when_there_is_no_more(monkeypatch):
    monkeypatch.setattr(next_claim, "GROUP_SECONDS", 60.0)
    make_jobs(make_queue(num_slots=10), 3)
    with turned_loop(threads=8) as loop:
        loop.take(3)

        assert loop.claim_loop.next_claim.due_at > time.monotonic() + 30.0


def test_loop_does_not_claim_at_once_when_coroutines_fill_their_slots(monkeypatch):
    monkeypatch.setattr(next_claim, "GROUP_SECONDS", 60.0)
    queue = make_queue(num_slots=100)
    make_jobs(queue, 20, is_async=True)
    with turned_loop(threads=8) as loop:
        loop.take(8)

        assert loop.claim_loop.next_claim.due_at > time.monotonic() + 30.0

        for running in loop.executor.jobs[:]:
            loop.end(running)
        loop.take(8)


def test_loop_claims_at_once_when_coroutines_have_room_left():
    make_jobs(make_queue(num_slots=100), 20)
    make_jobs(make_queue(num_slots=100), 20, is_async=True, priority=250)
    with turned_loop(threads=2) as loop:
        loop.take(2 + 8)


def test_loop_watches_no_job_that_was_claimed_a_moment_ago(monkeypatch):
    watched = []
    monkeypatch.setattr(
        running_jobs.finish_queries, "watch_jobs", lambda _db, _worker, ids: watched.append(ids)
    )
    make_job()
    with turned_loop() as loop:
        [running] = loop.take(1)
        checks = loop.claim_loop.running_jobs
        now = time.monotonic() + running_jobs.WATCH_SECONDS
        running._claimed_at = now - 0.1

        checks.run_once(loop.claim_loop.connection, now)

        assert watched == []
