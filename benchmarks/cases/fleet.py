"""The same work for few and for many workers: more of them must not make it slower or dearer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..bench import LOOK_SECONDS, STALL_SECONDS, UNLIMITED, Bench
from ..bench_app import tasks
from ..fleet import Fleet
from ..measure import ratio
from ..results import Incorrect, Row, Sample, at_least, at_most

WORK_SECONDS = 0.02
SIZES = (1, 4, 16, 64, 120)
WARM_CLAIMS = 20
"""Claims of each connection before anything counts: the first ones pay for planning."""
LEAST_RATE = 0.8
MOST_COST = 1.5
NUM_SLOTS = 3
QUEUES = 20


@dataclass(slots=True)
class Place:
    """A number of workers and threads on a number of queues."""

    workers: int
    threads: int
    queues: int
    num_slots: int | None
    samples: list[Sample] = field(default_factory=list)

    def __str__(self) -> str:
        queues = (
            "one queue without limit"
            if self.num_slots == UNLIMITED
            else f"{self.queues} queues × {self.num_slots} slots"
        )
        threads = f" × {self.threads} threads" if self.threads > 1 else ""
        return f"{self.workers} workers{threads}, {queues}"


def run(bench: Bench) -> Iterator[Row]:
    """Measure all places in turns."""
    bench.use("main")
    jobs, seconds = bench.size(10_000, 1_000), bench.size(10, 2)
    sizes = SIZES if not bench.quick else (1, 16)
    wide = [Place(workers, 1, 1, UNLIMITED) for workers in sizes]
    few = Place(sizes[2] if len(sizes) > 2 else 4, 1, QUEUES, NUM_SLOTS)
    many = Place(sizes[-1], 1, QUEUES, NUM_SLOTS)
    threaded = Place(few.workers, 8, QUEUES, NUM_SLOTS)
    crowded = Place(many.workers, 1, 1, many.workers)
    places = [*wide, few, many, threaded, crowded]
    for _ in range(bench.repeat):
        for place in places:
            place.samples.append(measure(bench, place, jobs, seconds))
    for place in places:
        yield Row(
            "fleet",
            f"{jobs:,} jobs × {WORK_SECONDS * 1000:.0f} ms, {place}",
            "jobs/s",
            place.samples,
        )
    yield Row(
        "fleet",
        f"least rate against that of a smaller fleet, up to {sizes[-1]} workers",
        "×",
        [Sample(_least_rate(samples)) for samples in _rounds(wide)],
        target=at_least(LEAST_RATE),
        digits=2,
    )
    if all(sample.cost and sample.cost.server_cpu_seconds for p in places for sample in p.samples):
        yield Row(
            "fleet",
            "most PG CPU per job against the smallest fleet",
            "×",
            [Sample(_most_cost(samples)) for samples in _rounds(wide)],
            higher_is_better=False,
            target=at_most(MOST_COST),
            digits=2,
        )
    ceiling = QUEUES * NUM_SLOTS / WORK_SECONDS
    yield Row(
        "fleet",
        f"rate of {many.workers} workers against {few.workers}, limited slots",
        "×",
        [
            Sample(
                ratio(large.value, small.value),
                note=f"the slots allow {ceiling:,.0f} jobs/s: {large.value / ceiling:.2f} of it, "
                f"by {few.workers} workers {small.value / ceiling:.2f}",
            )
            for large, small in zip(many.samples, few.samples, strict=True)
        ],
        target=at_least(LEAST_RATE),
        digits=2,
    )


def _rounds(places: Sequence[Place]) -> list[list[Sample]]:
    """Return for each round the samples of all places."""
    return [list(samples) for samples in zip(*(p.samples for p in places), strict=True)]


def _least_rate(samples: Sequence[Sample]) -> float:
    best, least = 0.0, 1.0
    for sample in samples:
        best = max(best, sample.value)
        least = min(least, ratio(sample.value, best))
    return least


def _most_cost(samples: Sequence[Sample]) -> float:
    costs = [_cpu_per_job(sample) for sample in samples]
    return max(ratio(cost, costs[0]) for cost in costs)


def _cpu_per_job(sample: Sample) -> float:
    assert sample.cost is not None
    assert sample.cost.server_cpu_seconds is not None
    return sample.cost.server_cpu_seconds / max(1, sample.jobs)


def measure(bench: Bench, place: Place, jobs: int, seconds: float) -> Sample:
    """Let a warm fleet work on `jobs` jobs, for at most `seconds`."""
    bench.reset()
    tenants = [f"t{number}" for number in range(place.queues)]
    bench.make_queues(tenants, num_slots=place.num_slots, paused=False)
    with bench.fleet(place.workers, threads=place.threads, seconds=WORK_SECONDS) as fleet:
        bench.wait_until_idle(fleet)
        cold = _warm_up(bench, fleet, place, tenants)
        _pause(bench)
        first = bench.value("SELECT coalesce(max(id), 0) FROM tenantqueue_job")
        _put_in(tenants, jobs)
        bench.vacuum()
        bench.settle()
        meter, since = bench.meter(fleet), time.monotonic()
        bench.resume()
        _wait(bench, fleet, seconds)
        end = bench.value("SELECT clock_timestamp()")
        cost = meter.read()
        told = fleet.ask(since)
        _pause(bench)
        _wait_until_none_runs(bench, fleet)
    row = bench.db.execute(
        "SELECT count(*) FILTER (WHERE finished_at <= %(end)s), count(DISTINCT id), count(*), "
        "count(*) FILTER (WHERE state = 'success' AND attempt = 1), "
        "count(*) FILTER (WHERE claim_seq > 1), extract(epoch FROM "
        "least(max(finished_at), %(end)s) - min(queued_at))::float8 "
        "FROM tenantqueue_job_history WHERE id > %(first)s",
        {"end": end, "first": first},
    ).fetchone()
    assert row is not None
    ended, distinct, rows, succeeded, again, took = row
    waiting = bench.value("SELECT count(*) FROM tenantqueue_job_hot WHERE state = 'ready'")
    if not distinct == rows == succeeded == jobs - waiting:
        raise Incorrect(
            f"{jobs} jobs were put in; {rows} ended, {distinct} different ones, {succeeded} well, "
            f"and {waiting} wait; all states: {bench.states()}"
        )
    times = [round(1000 * value, 1) for value in sorted(told.seconds)]
    note = (
        f"{told.claims / ended:.2f} claims/job, {told.empty_claims / ended:.2f} of them empty, "
        f"p50 {times[len(times) // 2]}, p99 {times[len(times) * 99 // 100]} ms; Python "
        f"{cost.python_cpu_seconds / cost.seconds:.2f}, PG "
        f"{(cost.server_cpu_seconds or 0.0) / cost.seconds:.2f} cores"
    )
    if cold is not None:
        note += f"; not warm: a worker had claimed {cold} times in {STALL_SECONDS:.0f} s"
    if again:
        note += f"; {again} given back once"
    return Sample(ended / took, ended, cost, note)


def _put_in(tenants: list[str], jobs: int) -> None:
    for tenant in tenants:
        tasks.noop_sync.using(tenant=tenant).enqueue_many([()] * (jobs // len(tenants)))


def _pause(bench: Bench) -> None:
    bench.db.execute("UPDATE tenantqueue_tenantqueue SET paused = true")


def _warm_up(bench: Bench, fleet: Fleet, place: Place, tenants: list[str]) -> int | None:
    """Run other jobs until each worker has claimed often enough.

    Return the fewest claims of a worker when some still has not after a long time, else None.
    """
    end = time.monotonic() + STALL_SECONDS
    while (least := fleet.ask().least_claims) < WARM_CLAIMS:
        if time.monotonic() > end:
            return least
        _put_in(tenants, max(200, 10 * place.workers * place.threads))
        bench.wait_until_done(fleet)
    return None


def _wait(bench: Bench, fleet: Fleet, seconds: float) -> None:
    """Wait until nothing is left, for at most `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and bench.value("SELECT EXISTS (SELECT FROM tenantqueue_job_hot)"):
        fleet.check()
        time.sleep(LOOK_SECONDS)


def _wait_until_none_runs(bench: Bench, fleet: Fleet) -> None:
    fleet.wait_for(
        lambda: (
            not bench.value(
                "SELECT count(*) FROM tenantqueue_job_hot WHERE state IN ('queued', 'running')"
            )
        ),
        "the jobs that were claimed end",
    )
