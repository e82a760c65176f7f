"""Guarantee 3: at equal priority, queues take turns."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection

from tests.concurrency.loops import turned_loop
from tests.factories import MORE_THAN_ENOUGH, make_jobs, make_queue

pytestmark = pytest.mark.usefixtures("manner")


@pytest.mark.heavy
@pytest.mark.heavy
@pytest.mark.parametrize("room", [1, 10, 50, 76, 128])
@pytest.mark.parametrize("slots", [2, 1000])
def test_big_tenant_gets_its_share_and_a_turn_when_small_ones_come_after(worker, room, slots):
    big = make_queue(num_slots=slots)
    make_jobs(big, 5_000)
    small = [make_queue(num_slots=slots).pk for _ in range(99)]
    for queue_id in small:
        make_jobs(queue_id, 4)
    analyze()

    served = serve_until_done(worker, room, small, 4)

    assert served[big.pk] <= 4 + 1


@pytest.mark.parametrize("position", ["first", "last"])
def test_turns_are_even_when_several_workers_claim_by_turns(worker_factory, position):
    before = make_queue(num_slots=1000)
    small = [make_queue(num_slots=1000).pk for _ in range(20)]
    after = make_queue(num_slots=1000)
    big = before if position == "first" else after
    make_jobs(big, 2000)
    for queue_id in small:
        make_jobs(queue_id, 10)
    workers = [worker_factory() for _ in range(4)]
    served: Counter[int] = Counter()

    while any(served[queue_id] < 10 for queue_id in small):
        for worker in workers:
            served.update(job.queue_id for job in worker.claim_and_finish(3))

    # each worker goes its own rounds: a turn more of the big tenant for each of them
    assert served[big.pk] <= 10 + 2 * len(workers)


@pytest.mark.parametrize("room", [1, 2, 5, 8, 100])
def test_heavier_queue_gets_three_turns_for_one_when_its_weight_is_three(worker, room):
    heavy = make_queue(num_slots=1000, weight=3)
    light = make_queue(num_slots=1000, weight=1)
    make_jobs(heavy, 300)
    make_jobs(light, 300)

    order: list[int] = []
    while len(order) < 200:
        order += [job.queue_id for job in worker.claim_and_finish(room)]

    for start in range(0, 200, 4):
        assert Counter(order[start : start + 4]) == {heavy.pk: 3, light.pk: 1}, start


def test_turn_goes_to_the_next_queue_when_one_has_nothing_left(worker):
    queues = [make_queue(num_slots=10).pk for _ in range(3)]
    for queue_id, count in zip(queues, (1, 3, 2), strict=True):
        make_jobs(queue_id, count)
    first, second, third = queues

    order = [job.queue_id for job in worker.claim_all(1)]

    assert order == [first, second, third, second, third, second]


def test_each_priority_keeps_its_own_round_when_several_are_busy(worker):
    queues = [make_queue(num_slots=1000).pk for _ in range(3)]
    for queue_id in queues:
        make_jobs(queue_id, 4, priority=100)
        make_jobs(queue_id, 4, priority=200)

    order = [(job.lane, job.queue_id) for job in worker.claim_all(2)]

    expected = [(lane, queue_id) for lane in (100, 200) for _ in range(4) for queue_id in queues]
    assert order == expected


def test_new_tenant_waits_for_one_round_when_many_are_busy(worker):
    busy = [make_queue(num_slots=1000).pk for _ in range(30)]
    for queue_id in busy:
        make_jobs(queue_id, 20)
    for _ in range(50):
        worker.claim_and_finish(1)
    new = make_queue(num_slots=1)
    make_jobs(new, 1)

    waited = 0
    while new.pk not in [job.queue_id for job in worker.claim_and_finish(1)]:
        waited += 1

    assert waited <= len(busy)


def serve_until_done(worker, room, queues, each):
    """Claim and finish until each of `queues` has been served `each` jobs; return all counts."""
    served: Counter[int] = Counter()
    for _ in range(MORE_THAN_ENOUGH):
        for job in worker.claim_and_finish(room):
            served[job.queue_id] += 1
            if all(served[queue_id] >= each for queue_id in queues):
                return served
    raise AssertionError("small tenants are not served")


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tenantqueue_job_hot")


def test_first_claims_are_spread_when_many_processes_are_new():
    queues = [make_queue(num_slots=1000) for _ in range(50)]
    for queue in queues:
        make_jobs(queue, 30)
    first = set()

    for _ in range(20):
        with turned_loop(threads=1) as loop:
            first.add(loop.take(1)[0]._claimed.queue_id)

    assert len(first) >= 8
