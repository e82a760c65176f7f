"""Claims of a queue with many free slots go side by side, and its limit holds all the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import pytest
from django.db import connection

from django_tenantqueue.models import Job
from django_tenantqueue.operations.claim import Verdict
from django_tenantqueue.queries.claim import MOST_ROOM
from tests.factories import FakeWorker, make_jobs, make_queue

pytestmark = pytest.mark.usefixtures("manner")


def most_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('max_connections')::integer")
        return int(cursor.fetchone()[0])


@pytest.fixture
def small_worker(worker_factory) -> Callable[[], FakeWorker]:
    """Make workers whose claims take one job at most: a queue is wide to them with few slots."""

    def make() -> FakeWorker:
        worker = worker_factory()
        request = worker.claimer.request
        worker.claimer.request = lambda *room: replace(request(*room), most_room=1)
        return worker

    return make


def active() -> int:
    return Job.objects.active().count()


def test_claims_go_side_by_side_when_the_queue_is_wide(worker_factory):
    queue = make_queue(num_slots=most_connections() * MOST_ROOM)
    ids = make_jobs(queue, 4)
    first, second = worker_factory(), worker_factory()

    with first.open_claim(2) as jobs:
        others = second.claim(2)

    assert sorted(job.id for job in [*jobs, *others]) == ids


def test_claims_follow_each_other_when_one_slot_is_missing(worker_factory):
    queue = make_queue(num_slots=most_connections() * MOST_ROOM - 1)
    make_jobs(queue, 4)
    first, second = worker_factory(), worker_factory()

    with first.open_claim(2) as jobs:
        assert second.claim(2) == []

    assert len(jobs) == 2
    assert second.verdict is Verdict.CONTENDED


def test_limit_holds_when_claims_are_open_while_the_last_slots_go(small_worker):
    slots = most_connections() + 3
    make_jobs(make_queue(num_slots=slots), slots + 20)
    sharers = [small_worker() for _ in range(9)]
    with ExitStack() as still_open:
        for sharer in sharers[:5]:
            assert len(still_open.enter_context(sharer.open_claim(1))) == 1
        for sharer in sharers[5:]:
            assert len(sharer.claim(1)) == 1  # the fourth leaves one free slot too few to share

        late = small_worker()
        assert late.claim(1) == []
        assert late.verdict is Verdict.CONTENDED
    assert active() == 9

    for _ in range(slots):
        late.claim(1)

    assert active() == slots


def test_nothing_is_taken_when_the_queue_was_wide_a_moment_ago(small_worker):
    slots = most_connections()
    make_jobs(make_queue(num_slots=slots), 5)
    slow, quick = small_worker(), small_worker()

    with slow.db.transaction():
        slow.lock_queues(1)
        assert len(quick.claim(1)) == 1
        assert slow.take(1) == []

    assert active() == 1


def test_limit_holds_when_many_claim_at_once(small_worker, threads):
    slots = most_connections() + 10
    make_jobs(make_queue(num_slots=slots), slots + 40)
    workers = [small_worker() for _ in range(8)]

    def claim_until_full(worker: FakeWorker) -> int:
        taken = 0
        for _ in range(40 * slots):
            taken += len(worker.claim(1))
            if taken and worker.verdict is Verdict.BLOCKED:
                break
        return taken

    runs = [threads.start(lambda worker=worker: claim_until_full(worker)) for worker in workers]
    assert sum(run.result(60) for run in runs) == slots
    assert active() == slots


def test_claim_of_any_room_takes_no_more_than_the_most(worker_factory):
    make_jobs(make_queue(num_slots=1_000_000), 2 * MOST_ROOM)
    worker = worker_factory()

    assert len(worker.claim(5000)) == MOST_ROOM // 2
