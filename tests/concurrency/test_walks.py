"""Guarantee 2 when a walk over the queues takes several claims, or leaves lanes alone."""

from __future__ import annotations

import pytest

from django_tenantqueue.operations.claim import BLOCKED_SECONDS
from tests.factories import Clock, make_blocked_queues, make_jobs, make_queue


@pytest.mark.parametrize("forget", [True, False], ids=["notified", "remembering"])
def test_better_job_is_not_overtaken_when_its_slot_becomes_free_behind_the_walk(
    worker_factory, forget
):
    """The walk has passed the queue as full, and meets it again under a worse priority."""
    worker, other = worker_factory(), worker_factory()
    queue = make_queue(num_slots=1)
    better = make_jobs(queue, 2, priority=100)
    worse = make_jobs(queue, 1, priority=300)
    held = other.claim()
    make_blocked_queues(300, priority=200)
    assert worker.claim(5) == []
    assert worker.walk.position.lane == 200
    other.finish(held)

    def claim_some():
        taken = []
        while not taken:
            if forget:
                worker.claimer.forget_blocked()
            taken = worker.claim(5)
        worker.finish(taken)
        return [job.id for job in taken]

    assert [claim_some(), claim_some()] == [better[1:], worse]


def test_better_job_is_not_overtaken_when_its_whole_lane_rests(worker_factory):
    clock = Clock()
    worker, other = worker_factory(clock=clock), worker_factory()
    queue = make_queue(num_slots=1)
    better = make_jobs(queue, 2, priority=100)
    make_jobs(queue, 1, priority=300)
    held = other.claim()
    free = make_jobs(make_queue(), 1, priority=300)
    make_blocked_queues(300, priority=100)
    assert worker.claim(5) == []
    clock.now += 0.1  # a costly walk: the lane rests for a quarter second from its end
    assert [job.id for job in worker.claim(5)] == free
    other.finish(held)

    clock.now += 0.17  # the queue itself may be looked at again
    assert worker.claim(5) == []
    assert worker.walk.lanes == [300]
    clock.now += BLOCKED_SECONDS
    assert [job.id for job in worker.claim(5)] == better[1:]
