"""A big fleet with nothing to do: what it costs the server, and how fast it starts."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..bench import Bench
from ..bench_app import tasks
from ..fleet import Fleet
from ..measure import percentile
from ..results import Cost, Incorrect, Row, Sample, at_most

WORKERS = 120
MOST_PERCENT = 5.0
WARM_UP = 20
PAUSE_SECONDS = 0.05
BOUNDS_MS = {50: 5.0, 99: 25.0}


def run(bench: Bench) -> Iterator[Row]:
    """Let all sleep, and put single jobs in."""
    bench.use("main")
    seconds, jobs = bench.size(30, 3), bench.size(200, 40)
    runs = bench.rounds(lambda: _measure(bench, seconds, jobs))
    yield Row(
        "idle",
        f"{WORKERS} idle workers with their supervisors, server's CPU, {seconds} s",
        "% of a core",
        [run[0] for run in runs],
        higher_is_better=False,
        target=at_most(MOST_PERCENT),
        digits=2,
    )
    for index, percent in enumerate((50, 99, 100), start=1):
        yield Row(
            "idle",
            f"{'max' if percent == 100 else f'p{percent}'}, {jobs} jobs "
            f"{PAUSE_SECONDS * 1000:.0f} ms apart, {WORKERS} asleep",
            "ms",
            [run[index] for run in runs],
            higher_is_better=False,
            target=at_most(BOUNDS_MS[percent]) if percent in BOUNDS_MS else None,
            digits=2,
        )


def _measure(bench: Bench, seconds: float, jobs: int) -> list[Sample]:
    bench.reset()
    bench.make_queues(["wide"], paused=False)
    bench.vacuum()
    bench.settle()
    without = rest(bench, None, seconds)
    with bench.fleet(WORKERS, seconds=0.0, supervised=True) as fleet:
        bench.wait_until_idle(fleet)
        time.sleep(2.0)
        idle = rest(bench, fleet, seconds)
        samples = _latencies(bench, fleet, jobs)
    bench.check_finished(WARM_UP + jobs)
    return [_share(idle, without), *samples]


def rest(bench: Bench, fleet: Fleet | None, seconds: float) -> Cost:
    """Return what a time costs in which the fleet has nothing to do."""
    meter = bench.meter(fleet)
    time.sleep(seconds)
    if fleet is not None:
        fleet.check()
    return meter.read()


def _share(idle: Cost, without: Cost) -> Sample:
    """Return the part of a core that the server uses for the fleet."""
    python = f"{idle.python_cpu_seconds / idle.seconds:.1%} of a core in the workers themselves"
    if idle.server_cpu_seconds is None or without.server_cpu_seconds is None:
        return Sample(0.0, note=f"the server is on another machine: not measured; {python}")
    base = without.server_cpu_seconds / without.seconds
    share = idle.server_cpu_seconds / idle.seconds - base
    return Sample(100 * share, cost=idle, note=f"{base:.1%} of a core without them; {python}")


def _latencies(bench: Bench, fleet: Fleet, jobs: int) -> list[Sample]:
    enqueue = tasks.noop_sync.using(tenant="wide")
    for _ in range(WARM_UP):
        enqueue.delay()
        time.sleep(PAUSE_SECONDS)
    bench.wait_until_done(fleet)
    returned: dict[int, float] = {}
    meter = bench.meter(fleet)
    for _ in range(jobs):
        began = time.monotonic()
        job = enqueue.delay()
        returned[job.pk] = time.monotonic()
        time.sleep(max(0.0, began + PAUSE_SECONDS - time.monotonic()))
    bench.wait_until_done(fleet)
    cost = meter.read()
    starts = dict(fleet.ask().begun)
    if missing := returned.keys() - starts.keys():
        raise Incorrect(f"{len(missing)} jobs ended that no worker has begun")
    late = [(starts[job] - at) * 1000 for job, at in returned.items()]
    return [Sample(percentile(late, percent), jobs, cost) for percent in (50, 99, 100)]
