"""A worker with nothing to do: from the enqueue to the first line of the body."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from ..bench import STALL_SECONDS, Bench, read_log
from ..bench_app import tasks
from ..measure import percentile
from ..results import Incorrect, Row, Sample, Target, at_most
from ..workers import Workers

WARM_UP = 20
PERCENTILES = (50, 95, 99)
P99_MS = 10.0


def run(bench: Bench) -> Iterator[Row]:
    """Enqueue jobs at a steady pace, and far enough apart that the worker sleeps before each."""
    bench.use("main")
    for jobs, pause_ms, asleep in (
        (bench.size(200, 100), 20, False),
        (bench.size(40, 10), 250, True),
    ):
        what = f"{jobs} jobs {pause_ms} ms apart" + (", each finds the worker asleep" * asleep)
        runs = bench.rounds(partial(_measure, bench, jobs, pause_ms))
        for index, name in enumerate(("p50", "p95", "p99", "max")):
            target: Target | None = at_most(P99_MS) if name == "p99" and not asleep else None
            yield Row(
                "latency",
                f"{name}, {what}",
                "ms",
                [run[index] for run in runs],
                higher_is_better=False,
                target=target,
                digits=2,
            )


def _measure(bench: Bench, jobs: int, pause_ms: int) -> list[Sample]:
    bench.reset()
    bench.make_queues(["wide"], paused=False)
    log = bench.new_log()
    enqueue = tasks.stamp.using(tenant="wide")
    with bench.workers() as workers:
        bench.wait_until_idle(workers)
        for number in range(WARM_UP):
            enqueue.delay(-1 - number)
            time.sleep(0.02)
        _wait_for_lines(bench, workers, WARM_UP)
        bench.vacuum()
        time.sleep(1.0)
        called, returned = [], []
        meter = bench.meter(workers)
        for number in range(jobs):
            called.append(time.monotonic_ns())
            enqueue.delay(number)
            returned.append(time.monotonic_ns())
            time.sleep(max(0.0, pause_ms / 1000 - (returned[-1] - called[-1]) / 1e9))
        _wait_for_lines(bench, workers, WARM_UP + jobs)
        cost = meter.read()
    bench.check_finished(WARM_UP + jobs)
    starts = {line.number: line.start for line in read_log(log)}
    if len(starts) != WARM_UP + jobs:
        raise Incorrect(f"{WARM_UP + jobs} jobs ended, but {len(starts)} different bodies ran")
    after = [(starts[number] - returned[number]) / 1e6 for number in range(jobs)]
    whole = [(starts[number] - called[number]) / 1e6 for number in range(jobs)]
    return [
        Sample(
            percentile(after, percent),
            jobs,
            cost,
            f"{percentile(whole, percent):.2f} ms from the call",
        )
        for percent in (*PERCENTILES, 100)
    ]


def _wait_for_lines(bench: Bench, workers: Workers, count: int) -> None:
    deadline = time.monotonic() + STALL_SECONDS
    while len(read_log(bench.log)) < count:
        workers.check()
        if time.monotonic() > deadline:
            raise Incorrect(f"{count} jobs have not run within {STALL_SECONDS:.0f} s")
        time.sleep(0.02)
    bench.wait_until_done(workers)
