"""Rates: no more jobs of a queue start in any span of time than its burst and its rate allow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from django_tenantqueue.models import Job, QueueRate, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.operations.claim import BLOCKED_SECONDS, Verdict
from django_tenantqueue.queries.claim import BATCH_SECONDS
from tests.factories import Clock, FakeWorker, make_jobs, make_queue, state_of
from tests.intervals import breaches_of_rate
from tests.process.workers import clock, wait_until
from tests.timing import assert_within

pytestmark = pytest.mark.usefixtures("manner")

NEVER = 0.001
"""A rate that brings nothing while a test runs."""


def starts_of(queue: TenantQueue) -> list[datetime]:
    return list(Job.objects.filter(queue=queue, attempt__gt=0).values_list("queued_at", flat=True))


def let_pass(queue: TenantQueue, seconds: float) -> None:
    rate = QueueRate.objects.get(queue=queue)
    QueueRate.objects.update(as_of=rate.as_of - timedelta(seconds=seconds))


def look_again(worker: FakeWorker, room: int = 10) -> int:
    worker.claimer.places.forget_blocked()
    return len(worker.claim(room))


@pytest.mark.parametrize(
    ("rate", "burst", "starts"), [(NEVER, 3, 3), (NEVER, None, 1), (2.5, None, 3), (0.25, 1, 1)]
)
def test_burst_starts_at_once_when_nothing_has_started_before(worker, rate, burst, starts):
    queue = make_queue(num_slots=10, max_per_second=rate, burst=burst)
    make_jobs(queue, 10)

    assert queue.burst_size == starts
    assert len(worker.claim(10)) == starts
    assert worker.claim(10) == []
    assert worker.verdict is Verdict.BLOCKED


@pytest.mark.parametrize(
    ("seconds", "starts"),
    [(0, 0), (900, 0), (1001, 1), (2900, 2), (3001, 3), (36000, 3), (-3600, 3)],
)
def test_rate_brings_starts_back_when_time_passes_or_the_clock_was_set_back(
    worker, seconds, starts
):
    queue = make_queue(num_slots=10, max_per_second=0.001, burst=3)
    make_jobs(queue, 10)
    worker.claim(10)

    let_pass(queue, seconds)

    assert look_again(worker) == starts


def test_fraction_of_a_start_is_kept_when_another_is_taken(worker):
    queue = make_queue(num_slots=10, max_per_second=0.001, burst=3)
    make_jobs(queue, 10)
    worker.claim(10)

    for seconds, starts in ((1600, 1), (500, 1), (500, 0), (500, 1)):
        let_pass(queue, seconds)
        assert look_again(worker) == starts


def test_starts_are_shared_by_all_priorities_when_a_claim_meets_a_queue_under_several(worker):
    queue = make_queue(num_slots=10, max_per_second=NEVER, burst=3)
    for priority in (100, 200, 300):
        make_jobs(queue, 2, priority=priority)

    assert [job.lane for job in worker.claim(10)] == [100, 100, 200]


def test_slots_hold_when_the_rate_allows_more(worker):
    make_jobs(make_queue(num_slots=2, max_per_second=1000), 10)

    assert len(worker.claim(10)) == 2


def test_starts_are_left_for_later_when_a_claim_has_less_room(worker):
    make_jobs(make_queue(num_slots=10, max_per_second=NEVER, burst=5), 10)

    assert [len(worker.claim(2)) for _ in range(4)] == [2, 2, 1, 0]


def test_nothing_is_spent_when_the_claim_is_undone(worker):
    queue = make_queue(num_slots=10, max_per_second=NEVER, burst=3)
    make_jobs(queue, 10)

    with worker.db.transaction(force_rollback=True):
        worker.lock_queues()
        assert len(worker.take()) == 3

    assert look_again(worker) == 3


def test_start_stays_spent_when_the_job_is_given_back(worker):
    queue = make_queue(num_slots=10, max_per_second=NEVER, burst=3)
    make_jobs(queue, 3)
    jobs = worker.claim(10)

    worker.give_back(jobs)

    assert {state_of(job.id) for job in jobs} == {"ready"}
    assert look_again(worker) == 0


def test_nothing_is_written_when_a_queue_has_no_rate(worker):
    make_jobs(make_queue(), 5)

    assert worker.claim()
    assert not QueueRate.objects.exists()


# with others


def test_other_queues_are_not_slowed_when_one_has_used_up_its_rate(worker):
    limited = make_queue(num_slots=100, max_per_second=NEVER, burst=1)
    free = make_queue(num_slots=100)
    make_jobs(limited, 50, priority=100)
    make_jobs(free, 30, priority=200)

    jobs = worker.claim(20) + worker.claim(20)

    assert [job.queue_id for job in jobs] == [limited.pk] + [free.pk] * 30


def test_claims_follow_each_other_when_a_queue_with_a_rate_has_many_slots(worker_factory):
    make_jobs(make_queue(num_slots=None, max_per_second=NEVER, burst=3), 10)
    first, second = worker_factory(), worker_factory()

    with first.open_claim(2) as jobs:
        assert second.claim(10) == []
        assert second.verdict is Verdict.CONTENDED

    assert len(jobs) == 2
    assert look_again(second) == 1


def test_start_counts_when_it_was_made_after_the_queue_was_chosen(worker_factory):
    queue = make_queue(num_slots=10, max_per_second=NEVER, burst=3)
    make_jobs(queue, 10)
    first = worker_factory()

    with first.db.transaction():
        first.lock_queues()
        QueueRate.objects.create(queue=queue, debt=2.0, as_of=timezone.now())
        assert len(first.take()) == 1


def race(workers: Sequence[FakeWorker], threads, queue: TenantQueue) -> None:
    """Claim and finish with all workers until no job is left."""
    waiting = Job.objects.filter(queue=queue).ready()

    def claim_until_empty(worker: FakeWorker, room: int) -> None:
        while waiting.exists():
            worker.finish(worker.claim(room))

    rooms = (1, 2, 5, 20, 100)
    runs = [
        threads.start(claim_until_empty, worker, rooms[number % len(rooms)])
        for number, worker in enumerate(workers)
    ]
    for run in runs:
        run.result(60)


@pytest.mark.parametrize(
    ("rate", "burst", "jobs"), [(200.0, 20, 400), (25.0, 1, 30), (300.0, None, 600)]
)
@pytest.mark.heavy
def test_rate_is_kept_when_many_workers_race(worker_factory, threads, rate, burst, jobs):
    queue = make_queue(num_slots=1000, max_per_second=rate, burst=burst)
    make_jobs(queue, jobs)

    race([worker_factory() for _ in range(5)], threads, queue)

    starts = starts_of(queue)
    assert len(starts) == jobs
    assert breaches_of_rate(starts, rate, queue.burst_size) == []


# edits


@pytest.mark.parametrize(
    ("edit", "starts"),
    [
        ({"max_per_second": None}, 10),
        ({"max_per_second": 100.0}, 2),
        ({"burst": 7}, 5),
        ({"burst": 1}, 0),
        ({"max_per_second": None, "burst": None}, 10),
    ],
    ids=str,
)
def test_next_look_heeds_the_edit_when_a_rate_is_tuned(worker, edit, starts):
    queue = make_queue(num_slots=20, max_per_second=NEVER, burst=2)
    make_jobs(queue, 12)
    worker.claim()
    QueueRate.objects.update(as_of=timezone.now() - timedelta(seconds=1))

    control.tune_queue(queue.pk, **edit)

    assert look_again(worker) == starts


def test_queue_waits_for_one_start_only_when_burst_and_rate_are_lowered(worker):
    queue = make_queue(num_slots=1000, max_per_second=1000.0)
    make_jobs(queue, 200)
    assert len(worker.claim(100)) == 100
    control.tune_queue(queue.pk, max_per_second=0.1, burst=1)
    QueueRate.objects.update(debt=1000)

    let_pass(queue, 10.1)

    assert look_again(worker) == 1


def test_burst_is_not_handed_out_again_when_it_is_lowered_and_raised(worker):
    queue = make_queue(num_slots=1000, max_per_second=1.0, burst=50)
    make_jobs(queue, 400)
    began = clock()
    seconds = 0.0

    for _ in range(4):
        look_again(worker, 100)
        control.tune_queue(queue.pk, burst=1)
        let_pass(queue, 1.1)
        seconds += 1.1
        assert look_again(worker, 100) == 1
        control.tune_queue(queue.pk, burst=50)
    look_again(worker, 100)

    seconds += (clock() - began).total_seconds()
    assert len(starts_of(queue)) <= 50 + seconds


def test_lowered_burst_is_had_in_full_after_a_pause(worker):
    queue = make_queue(num_slots=1000, max_per_second=0.1, burst=100)
    make_jobs(queue, 400)
    worker.claim(100)
    control.tune_queue(queue.pk, burst=5)

    for _ in range(3):
        let_pass(queue, 50.1)
        assert look_again(worker, 100) == 5
        assert look_again(worker, 100) == 0


def test_debt_above_a_lowered_burst_is_made_up_for(worker):
    """By the time that the queue leaves unused: the raised burst is there again after a pause."""
    queue = make_queue(num_slots=1000, max_per_second=0.1, burst=20)
    make_jobs(queue, 400)
    worker.claim(20)
    control.tune_queue(queue.pk, burst=1)
    let_pass(queue, 150.1)
    assert look_again(worker) == 1  # of 15 that the rate has brought: 14 are made up for

    control.tune_queue(queue.pk, burst=20)

    assert look_again(worker, 100) == 14


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("burst"), st.sampled_from([1, 2, 5, 20])),
        st.tuples(st.just("max_per_second"), st.sampled_from([0.001, 0.002, 0.01])),
        st.tuples(st.just("wait"), st.integers(1, 3000)),
        st.tuples(st.just("claim"), st.integers(1, 25)),
    ),
    min_size=8,
    max_size=20,
)
_UP_AND_DOWN = [
    ("claim", 25),
    *[("burst", 1), ("wait", 600), ("claim", 25), ("burst", 20), ("claim", 25)] * 3,
]


def test_rate_holds_whatever_is_edited_between_claims(worker):
    """No span has more starts than the largest burst and rate that were in force in it allow."""

    # not shrunk: each step is a claim of its own
    @settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
    @given(_STEPS)
    @example(_UP_AND_DOWN)
    def play(steps: list[tuple[str, Any]]) -> None:
        limits = {"burst": 20, "max_per_second": 0.002}
        queue = make_queue(num_slots=10_000, **limits)
        make_jobs(queue, 120)
        claims: list[tuple[datetime, int, dict[str, Any]]] = []
        waited = timedelta(0)
        for kind, value in steps:
            if kind == "claim":
                started = look_again(worker, value)
                claims.append((clock() + waited, started, dict(limits)))
            elif kind == "wait":
                waited += timedelta(seconds=value)
                if QueueRate.objects.filter(queue=queue).exists():
                    let_pass(queue, value)
            else:
                limits[kind] = value
                control.tune_queue(queue.pk, **{kind: value})
        for number in range(len(claims)):
            for last in range(number, len(claims)):
                span = claims[number : last + 1]
                most = max(in_force["burst"] for _, _, in_force in span)
                per_second = max(in_force["max_per_second"] for _, _, in_force in span)
                seconds = (span[-1][0] - span[0][0]).total_seconds()
                allowed = most + per_second * seconds + 0.05
                assert sum(started for _, started, _ in span) <= allowed, claims
        Job.objects.filter(queue=queue)._raw_delete("default")
        queue.delete()

    play()


def test_rate_in_force_is_kept_when_it_changes_while_workers_race(worker_factory, threads):
    queue = make_queue(num_slots=1000, max_per_second=20.0, burst=4)
    make_jobs(queue, 200)

    def tune() -> tuple[datetime, datetime]:
        wait_until(lambda: Job.objects.finished().count() >= 20)
        before = clock()
        control.tune_queue(queue.pk, max_per_second=300.0, burst=10)
        return before, clock()

    tuner = threads.start(tune)
    race([worker_factory() for _ in range(4)], threads, queue)

    before, after = tuner.result(60)
    starts = starts_of(queue)
    assert breaches_of_rate([at for at in starts if at < before], 20.0, 4) == []
    assert breaches_of_rate([at for at in starts if at > after], 300.0, 10) == []
    assert max(starts) - before < timedelta(seconds=7)  # the rest would have taken nine at 20/s


# cost


def test_queue_is_not_visited_when_it_used_up_its_rate_a_moment_ago(worker_factory):
    clock = Clock()
    worker = worker_factory(clock=clock)
    queue = make_queue(num_slots=10, max_per_second=NEVER, burst=1)
    make_jobs(queue, 5)
    held = worker.claim()

    worker.claim()
    assert list(worker.look.spent_seconds) == [queue.pk]
    assert worker.claimer.wait_seconds == BLOCKED_SECONDS

    worker.claim(finished=held)  # the end of a job makes no start
    assert worker.look.sights == []


@pytest.mark.parametrize(
    ("rate", "burst", "seconds"),
    [(0.5, 1, BLOCKED_SECONDS), (20.0, 1, 0.05), (100.0, 1, 0.01), (1000.0, None, BATCH_SECONDS)],
)
def test_worker_looks_again_when_the_rate_brings_the_next_starts(
    worker_factory, rate, burst, seconds
):
    clock = Clock()
    worker = worker_factory(clock=clock)
    queue = make_queue(num_slots=1000, max_per_second=rate, burst=burst)
    make_jobs(queue, 1100)
    worker.claim(1)
    ahead = timezone.now() + timedelta(seconds=0.5)
    QueueRate.objects.update(debt=queue.burst_size, as_of=ahead)

    worker.claim(100)
    assert_within(0.5, timezone.now() - ahead + timedelta(seconds=0.5))

    assert worker.verdict is Verdict.BLOCKED
    assert worker.claimer.wait_seconds == pytest.approx(seconds)
    clock.now += seconds
    let_pass(queue, 0.5 + 2 * max(seconds, 1 / rate))
    assert worker.claim(100)


def test_soonest_start_is_waited_for_when_several_queues_have_rates(worker_factory):
    clock = Clock()
    worker = worker_factory(clock=clock)
    queues = [make_queue(num_slots=10, max_per_second=rate, burst=1) for rate in (NEVER, 20.0, 0.5)]
    for queue in queues:
        make_jobs(queue, 2)
    make_jobs(make_queue(paused=True), 1)
    began = timezone.now()
    for queue in queues:
        QueueRate.objects.create(queue=queue, debt=1.0, as_of=began + timedelta(seconds=0.9))

    assert worker.claim() == []
    assert_within(0.9, timezone.now() - began)

    assert worker.claimer.wait_seconds == pytest.approx(0.05)
