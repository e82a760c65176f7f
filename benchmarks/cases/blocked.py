"""Thousands of queues that are paused or full and have backlogs, beside a hundred open ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from django_tenantqueue.models import TenantQueue
from django_tenantqueue.queries.enqueue import wake_any_workers

from ..bench import Bench, read_log
from ..bench_app import tasks
from ..fill import add_waiting
from ..measure import percentile
from ..results import Cost, Incorrect, Row, Sample, at_least, at_most
from ..workers import Workers
from .backlog import sample_ratios

OPEN = 100
BACKLOG = 10
"""Jobs of each blocked queue."""
WORKERS = 4
WITHIN = 0.85
MOST_PERCENT = 2.0
P95_MS = 20.0
KINDS: dict[str, dict[str, Any]] = {
    "alone": {},
    "paused": {"paused": True},
    "full": {"num_slots": 0},
}


def run(bench: Bench) -> Iterator[Row]:
    """Drain the open queues alone and beside the others; then let a worker idle beside those."""
    bench.use("main")
    blocked, each = bench.size(9_900, 400), bench.size(1_000, 50)
    rates: dict[str, list[Sample]] = {kind: [] for kind in KINDS}
    for _ in range(bench.repeat):
        for kind in KINDS:
            rates[kind].append(_drain(bench, kind, blocked, each))
    what = f"{OPEN} tenants × {each:,} jobs, {WORKERS} workers"
    for kind, samples in rates.items():
        beside = "" if kind == "alone" else f", beside {blocked:,} {kind} queues with backlogs"
        yield Row("blocked", f"{what}{beside}", "jobs/s", samples)
    for kind in ("paused", "full"):
        yield Row(
            "blocked",
            f"rate beside {kind} queues against the rate alone",
            "×",
            sample_ratios(rates[kind], rates["alone"]),
            target=at_least(WITHIN),
            digits=2,
        )
    seconds, jobs = bench.size(30, 3), bench.size(200, 40)
    runs = bench.rounds(partial(_idle, bench, blocked + OPEN, seconds, jobs))
    yield Row(
        "blocked",
        f"an idle worker beside {blocked + OPEN:,} full queues, its CPU and the server's",
        "% of a core",
        [run[0] for run in runs],
        higher_is_better=False,
        target=at_most(MOST_PERCENT),
        digits=2,
    )
    yield Row(
        "blocked",
        f"p95, {jobs} jobs of a free queue beside them",
        "ms",
        [run[1] for run in runs],
        higher_is_better=False,
        target=at_most(P95_MS),
        digits=2,
    )


def _fill(bench: Bench, kind: str, blocked: int, opened: int) -> tuple[list[int], int]:
    """Make queues, blocked ones with backlogs between open ones.

    Return the ids of the open ones, and how many jobs wait in the others.
    """
    bench.reset()
    total = opened + blocked if KINDS[kind] else opened
    queues = bench.make_queues([f"t{number}" for number in range(total)], paused=False)
    ids = [queue.pk for queue in queues]
    free = ids[:: total // opened][:opened]
    rest = sorted(set(ids).difference(free))
    TenantQueue.objects.filter(pk__in=rest).update(**KINDS[kind])
    return free, add_waiting(bench.db, rest, BACKLOG) if rest else 0


def _drain(bench: Bench, kind: str, blocked: int, each: int) -> Sample:
    free, _ = _fill(bench, kind, blocked, OPEN)
    jobs = OPEN * each
    with bench.workers(commands=WORKERS) as workers:
        bench.wait_until_idle(workers)
        add_waiting(bench.db, free, each)
        bench.vacuum()
        meter = bench.meter(workers)
        wake_any_workers("default", most=1000)
        _wait_for(bench, workers, jobs)
        cost = meter.read()
    return Sample(bench.check_finished(jobs).rate, jobs, cost)


def _wait_for(bench: Bench, workers: Workers, jobs: int) -> None:
    deadline = time.monotonic() + 120.0
    while bench.value("SELECT count(*) FROM tenantqueue_job_history") < jobs:
        workers.check()
        if time.monotonic() > deadline:
            raise Incorrect(f"{jobs} jobs have not ended: {bench.states()}")
        time.sleep(0.1)


def _idle(bench: Bench, queues: int, seconds: float, jobs: int) -> list[Sample]:
    (free, *_), waiting = _fill(bench, "full", queues, 1)
    bench.vacuum()
    tenant = TenantQueue.objects.get(pk=free).tenant
    without = _rest(bench, None, seconds)
    log = bench.new_log()
    enqueue = tasks.stamp.using(tenant=tenant)
    returned = []
    with bench.workers() as workers:
        bench.wait_until_idle(workers)
        time.sleep(2.0)
        idle = _rest(bench, workers, seconds)
        for number in range(jobs):
            enqueue.delay(number)
            returned.append(time.monotonic_ns())
            time.sleep(0.05)
        _wait_for(bench, workers, jobs)
    starts = {line.number: line.start for line in read_log(log)}
    late = [(starts[number] - at) / 1e6 for number, at in enumerate(returned)]
    used = idle.python_cpu_seconds + (idle.server_cpu_seconds or 0.0)
    share = used / idle.seconds - (without.server_cpu_seconds or 0.0) / without.seconds
    return [
        Sample(100 * share, cost=idle, note=f"{waiting:,} jobs wait"),
        Sample(percentile(late, 95), jobs, note=f"max {max(late):.1f} ms"),
    ]


def _rest(bench: Bench, workers: Workers | None, seconds: float) -> Cost:
    meter = bench.meter(workers)
    time.sleep(seconds)
    return meter.read()
