"""A big backlog delays nobody: queues of equal priority take turns by weight."""

import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.worker.child.claim_ahead import MOST_AHEAD
from tests.testapp.tasks import noop
from tests.timing import assert_within

from .workers import Workers, make_queue, wait_for_end, wait_until

SMALL = [f"small {number}" for number in range(30)]
EACH = 10
"""Jobs of a small tenant."""


def claim_order(ids: list[int]) -> list[str]:
    rows = Job.objects.filter(pk__in=ids, final=True).order_by("queued_at", "id")
    return list(rows.values_list("queue__tenant", flat=True))


def order_of_claims(workers: Workers, processes: int) -> list[str]:
    """Return the tenants of the jobs up to the last one of a small tenant, as they were claimed."""
    for tenant in ["big", *SMALL]:
        make_queue(tenant, num_slots=1000)  # nobody waits for a slot, only for turns
    ids = noop.using(tenant="big").enqueue_many([()] * 4000)
    for tenant in SMALL:
        ids += noop.using(tenant=tenant).enqueue_many([()] * EACH)
    workers.launch(f"--processes={processes}")
    wait_for_end(ids, timeout=60)
    order = claim_order(ids)
    last = max(at for at, tenant in enumerate(order) if tenant != "big")
    return order[: last + 1]


def largest_lead(order: list[str]) -> int:
    """Return by how many jobs one tenant was ahead of another at most."""
    had = dict.fromkeys(order, 0)
    lead = 0
    for tenant in order:
        had[tenant] += 1
        lead = max(lead, had[tenant] - min(had.values()))
    return lead


def test_small_tenants_are_done_when_a_big_one_has_had_its_share(workers: Workers):
    order = order_of_claims(workers, processes=1)

    # one turn, and what a busy machine gives back and claims again; tests/concurrency is exact
    assert order.count("big") <= EACH + 3
    assert largest_lead(order) <= 6


@pytest.mark.heavy
def test_a_big_tenant_gets_little_more_when_processes_pass_over_locked_queues(workers: Workers):
    # A process that finds all other rows locked fills its claim from the big one's.
    one_claim = 8 + MOST_AHEAD

    order = order_of_claims(workers, processes=2)

    assert order.count("big") <= EACH + 2 * one_claim


@pytest.mark.heavy
def test_small_tenants_are_next_when_they_come_to_a_busy_worker(workers: Workers):
    big = noop.using(tenant="big").enqueue_many([()] * 12000)
    workers.launch("--processes=2")
    finished = Job.objects.filter(pk__in=big, final=True)
    wait_until(lambda: finished.count() > 500)

    small = [
        job_id for tenant in SMALL for job_id in noop.using(tenant=tenant).enqueue_many([()] * EACH)
    ]
    jobs = wait_for_end(small, timeout=60)

    assert finished.count() < len(big)  # the big one was there all the time
    worst = max((job.queued_at - job.created_at).total_seconds() for job in jobs)
    assert_within(2.0, worst)


def test_turns_follow_the_weights_when_both_queues_have_work(workers: Workers):
    make_queue("heavy", weight=3, num_slots=1000)  # more than a process claims at once
    make_queue("light", weight=1, num_slots=1000)
    light = noop.using(tenant="light").enqueue_many([()] * 600)
    heavy = noop.using(tenant="heavy").enqueue_many([()] * 600)
    workers.launch()

    wait_for_end([*heavy, *light], timeout=60)

    order = claim_order([*heavy, *light])
    last_heavy = max(at for at, tenant in enumerate(order) if tenant == "heavy")
    had = order[:last_heavy].count("light")
    assert 197 <= had <= 203
