"""A monitor with many details: against as many jobs in a queue, and what others feel of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from django_tenantqueue.models import ConcurrentJobMonitor

from ..bench import LOOK_SECONDS, STALL_SECONDS, Bench, read_log
from ..bench_app import tasks
from ..measure import most_at_once, percentile, ratios
from ..results import Incorrect, Row, Sample, at_most
from ..workers import Workers

PARALLEL = 20
PROCESSES = 2
WITHIN = 1.15
NEIGHBOUR_PAUSE = 0.05
NEIGHBOUR_WITHIN = 2.0


def run(bench: Bench) -> Iterator[Row]:
    """Measure both in turns, and how much longer the monitor takes."""
    bench.use("main")
    jobs = bench.size(20_000, 1_000)
    pairs = bench.rounds(lambda: (_drain(bench, jobs, _enqueue), _drain(bench, jobs, _start)))
    plain, fed = ([pair[side] for pair in pairs] for side in (0, 1))
    what = f"{jobs:,} × 5 ms, {PARALLEL} at once"
    yield Row("monitors", f"{what}, jobs of a queue", "jobs/s", plain)
    yield Row("monitors", f"{what}, details of a monitor", "jobs/s", fed)
    longer = ratios([sample.value for sample in plain], [sample.value for sample in fed])
    yield Row(
        "monitors",
        "time of the monitor / time of the queue",
        "×",
        [Sample(value) for value in longer],
        higher_is_better=False,
        target=at_most(WITHIN),
        digits=2,
    )
    yield from _neighbour(bench)


def _neighbour(bench: Bench) -> Iterator[Row]:
    """Measure how long another tenant's jobs wait, on idle workers and beside a monitor."""
    details, jobs = bench.size(50_000, 10_000), bench.size(200, 20)
    pairs = bench.rounds(lambda: (_wait(bench, 0, jobs), _wait(bench, details, jobs)))
    idle, beside = ([pair[side] for pair in pairs] for side in (0, 1))
    what = f"p95 of {jobs} jobs of another tenant"
    for where, samples in ((", idle workers", idle), (f", beside {details:,} details", beside)):
        yield Row("monitors", what + where, "ms", samples, higher_is_better=False, digits=2)
    yield Row(
        "monitors",
        "p95, the latter against the former",
        "×",
        [Sample(v) for v in ratios([s.value for s in beside], [s.value for s in idle])],
        higher_is_better=False,
        target=at_most(NEIGHBOUR_WITHIN),
        digits=2,
    )


def _wait(bench: Bench, details: int, jobs: int) -> Sample:
    """Return how long jobs wait that are enqueued now and then, from the return of the call."""
    bench.reset()
    bench.make_queues(["t", "other"], paused=False)
    log = bench.new_log()
    with bench.workers(processes=PROCESSES) as workers:
        bench.wait_until_idle(workers)
        if details:
            calls = (tasks.work.call(1, number) for number in range(details))
            ConcurrentJobMonitor.objects.start("work", calls, parallel=PARALLEL, tenant="t")
        time.sleep(1.0)
        meter = bench.meter(workers)
        returned = []
        for number in range(jobs):
            tasks.stamp.using(tenant="other").delay(number)
            returned.append(time.monotonic_ns())
            time.sleep(NEIGHBOUR_PAUSE)
        time.sleep(1.0)
        left = bench.value("SELECT count(*) FROM tenantqueue_job_hot")
        cost = meter.read()
    starts = {line.number: line.start for line in read_log(log) if line.tenant == 0}
    if len(starts) != jobs:
        raise Incorrect(f"{jobs} jobs of the other tenant, {len(starts)} bodies of them ran")
    if details and left < 2:
        raise Incorrect("the monitor had ended before the jobs beside it")
    waits = [(starts[number] - returned[number]) / 1e6 for number in range(jobs)]
    note = f"p50 {percentile(waits, 50):.2f}, max {max(waits):.1f}"
    return Sample(percentile(waits, 95), jobs, cost, note)


def _enqueue(bench: Bench, jobs: int) -> None:
    bench.make_queues(["t"], num_slots=PARALLEL)
    tasks.work.using(tenant="t").enqueue_many([(0, number) for number in range(jobs)])


def _start(bench: Bench, jobs: int) -> None:
    bench.make_queues(["t"])
    details = (tasks.work.call(0, number) for number in range(jobs))
    ConcurrentJobMonitor.objects.start("work", details, parallel=PARALLEL, tenant="t")


def _drain(bench: Bench, jobs: int, put_in: Callable[[Bench, int], None]) -> Sample:
    bench.reset()
    put_in(bench, jobs)
    bench.vacuum()
    log = bench.new_log()
    with bench.workers(processes=PROCESSES) as workers:
        bench.wait_until_idle(workers)
        meter = bench.meter(workers)
        bench.resume()
        _wait_until_done(bench, workers)
        cost = meter.read()
    lines = read_log(log)
    most = most_at_once((line.start, line.end) for line in lines)
    if most > PARALLEL:
        raise Incorrect(f"{most} ran at once, {PARALLEL} are allowed")
    if len(lines) != jobs:
        raise Incorrect(f"{jobs} were put in, but {len(lines)} bodies ran: {bench.states()}")
    began, ended = min(line.start for line in lines), max(line.end for line in lines)
    return Sample(jobs * 1e9 / (ended - began), jobs, cost, f"at once: {most}")


def _wait_until_done(bench: Bench, workers: Workers) -> None:
    """Wait until nothing is left, held details included."""
    left, since = -1, time.monotonic()
    while now := bench.value("SELECT count(*) FROM tenantqueue_job_hot"):
        workers.check()
        if now != left:
            left, since = now, time.monotonic()
        elif time.monotonic() - since > STALL_SECONDS:
            raise Incorrect(f"jobs are left, and none ends: {bench.states()}")
        time.sleep(LOOK_SECONDS)
