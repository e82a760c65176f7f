"""Ten thousand queues, half of them paused or full, against a hundred open ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils import timezone

from django_tenantqueue.models import TenantQueue, Worker

from ..bench import Bench
from ..claiming import register_worker
from ..fill import add_waiting
from ..results import Row, Sample, at_least, at_most
from ..window import measure_window
from .backlog import (
    CLAIM_WITHIN,
    DEEP,
    PLAIN,
    WITHIN,
    claim_sample,
    ended_rows,
    sample_ratios,
    use,
)

SLOTS_OF_FULL = 1


@dataclass(slots=True)
class Place:
    """A number of queues with a number of jobs each."""

    what: str
    database: str
    queues: int
    blocked: int
    each: int
    rates: list[Sample] = field(default_factory=list)
    claims: list[Sample] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.what}, {self.queues * self.each:,} waiting"


def run(bench: Bench) -> Iterator[Row]:
    """Measure both in turns; nothing is put in meanwhile, so the rate has a backlog of its own."""
    many = bench.size(10_000, 400)
    ended = f"{ended_rows(bench):,} ended"
    small = Place("100 open queues", PLAIN, 100, 0, 10)
    busy = Place("100 open queues", PLAIN, 100, 0, bench.size(2_000, 1_000))
    large = Place(
        f"{many:,} queues, {many // 2:,} of them paused or full, {ended}",
        *(DEEP, many, many // 2, bench.size(100, 500)),
    )
    for _ in range(bench.repeat):
        for place in (small, busy, large):
            _fill(bench, place)
            if place is not small:
                jobs = place.queues * place.each
                place.rates.append(measure_window(bench, jobs, bench.size(5, 1)))
            if place is not busy:
                place.claims.append(claim_sample(bench))
    for place in (busy, large):
        yield Row("queues", f"{place}", "jobs/s", place.rates)
    yield Row(
        "queues",
        "rate of the latter against the former",
        "×",
        sample_ratios(large.rates, busy.rates),
        target=at_least(round(1 / WITHIN, 3)),
        digits=2,
    )
    for place in (small, large):
        yield Row(
            "queues",
            f"claim of 10, {place}",
            "ms",
            place.claims,
            higher_is_better=False,
            digits=2,
        )
    yield Row(
        "queues",
        "claim, the latter against the former",
        "×",
        sample_ratios(large.claims, small.claims),
        higher_is_better=False,
        target=at_most(CLAIM_WITHIN),
        digits=2,
    )


def _fill(bench: Bench, place: Place) -> None:
    use(bench, place.database)
    bench.reset(history=place.database == PLAIN)
    queues = bench.make_queues([f"t{number}" for number in range(place.queues)], paused=False)
    ids = [queue.pk for queue in queues]
    # Blocked ones lie between the open ones: every second is paused or full, in turns.
    blocked = ids[1 : 2 * place.blocked : 2]
    paused, full = blocked[::2], blocked[1::2]
    TenantQueue.objects.filter(pk__in=paused).update(paused=True)
    TenantQueue.objects.filter(pk__in=full).update(num_slots=SLOTS_OF_FULL)
    add_waiting(bench.db, ids, place.each)
    _take_slots(bench, full)
    bench.vacuum()


def _take_slots(bench: Bench, queues: list[int]) -> None:
    """Put a running job into each queue, held by a worker that is alive and does not end it."""
    worker = register_worker(bench.db)
    # It has no process: only its heartbeat shows that it lives.
    alive = timezone.now() + timedelta(days=1)
    Worker.objects.filter(pk=worker).update(heartbeat_at=alive)
    bench.db.execute(
        "INSERT INTO tenantqueue_job_hot (queue_id, lane, priority, is_async, state, queued_at, "
        "started_at, worker_id, claim_seq, attempt, max_attempts, task, source_type, "
        "source_method, args) SELECT id, 240, 240, true, 'running', now(), now(), %s, 1, 1, 5, "
        "'held', 'task', 'held', '{}' FROM unnest(%s::integer[]) AS id",
        [worker, queues],
    )
