"""Claims of a queue without limit go side by side, and a limit that it is given holds at once."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest
from django.db import connection

from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations.claim import Verdict
from django_tenantqueue.operations.control import pause, tune_queue
from django_tenantqueue.queries.claim import MOST_ROOM
from tests.factories import FakeWorker, make_jobs, make_queue
from tests.process.workers import wait_until

pytestmark = pytest.mark.usefixtures("manner")
LIMITS = {
    "slots": lambda queue: tune_queue(queue.pk, num_slots=6),
    "rate": lambda queue: tune_queue(queue.pk, max_per_second=0.001),
    "pause": lambda queue: pause([queue.pk]),
}


def active() -> int:
    return Job.objects.active().count()


def test_claims_go_side_by_side(worker_factory):
    ids = make_jobs(make_queue(num_slots=None), 4)
    first, second = worker_factory(), worker_factory()

    with first.open_claim(2) as jobs:
        others = second.claim(2)

    assert sorted(job.id for job in [*jobs, *others]) == ids


def test_claim_of_any_room_takes_no_more_than_the_most(worker):
    make_jobs(make_queue(num_slots=None), 2 * MOST_ROOM)

    assert len(worker.claim(5000)) == MOST_ROOM // 2


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_limit_waits_for_the_claims_that_are_under_way(worker_factory, threads, limit):
    queue = make_queue(num_slots=None)
    make_jobs(queue, 20)
    late = worker_factory()

    with ExitStack() as still_open:
        for _ in range(2):
            still_open.enter_context(worker_factory().open_claim(3))
        limited = threads.start(lambda: limit(queue))
        wait_until(is_waited_for_claims)
        assert late.claim() == []  # the edit comes first
        assert late.verdict is Verdict.CONTENDED

    limited.result(20)
    assert active() == 6
    late.claimer.places.forget_blocked()
    queue.refresh_from_db()
    assert len(late.claim()) == (1 if queue.max_per_second else 0)


def is_waited_for_claims() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_nothing_is_taken_when_the_limit_came_after_the_queue_was_chosen(worker, limit):
    queue = make_queue(num_slots=None)
    make_jobs(queue, 5)

    with worker.db.transaction():
        worker.lock_queues(3)
        # the claim shares its lock from here on: the edit of a second session would wait
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            limit(queue)
            cursor.execute("RESET session_replication_role")
        assert worker.take(3) == []

    assert active() == 0


def test_limit_holds_when_it_comes_and_goes_while_many_claim(worker_factory, threads):
    queue = make_queue(num_slots=None)
    make_jobs(queue, 400)
    workers = [worker_factory() for _ in range(6)]
    seen: list[int] = []
    is_over = [False]

    def claim(worker: FakeWorker) -> None:
        while not is_over[0]:
            worker.claim(1)

    runs = [threads.start(lambda worker=worker: claim(worker)) for worker in workers]
    for _ in range(15):
        tune_queue(queue.pk, num_slots=3)
        first = active()
        time.sleep(0.02)
        seen.append(active() - max(3, first))
        tune_queue(queue.pk, num_slots=None)
        time.sleep(0.005)
    try:
        wait_until(lambda: active() > 3, what="more than three jobs are claimed without a limit")
    finally:
        is_over[0] = True
        for run in runs:
            run.result(20)

    assert max(seen) <= 0


def test_slots_are_counted_when_a_queue_has_a_limit_again(worker):
    queue = make_queue(num_slots=None)
    make_jobs(queue, 10)
    assert len(worker.claim(4)) == 4

    tune_queue(queue.pk, num_slots=5)

    worker.claimer.places.forget_blocked()
    assert len(worker.claim(4)) == 1
    assert TenantQueue.objects.get().num_slots == 5
