"""A transaction held open, a report or a dump: the server cannot clean up behind the jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

from ..bench import UNLIMITED, Bench
from ..bench_app import tasks
from ..fleet import Fleet
from ..measure import percentile, ratio
from ..results import Cost, Row, Sample, at_least, at_most

WORKERS = (4, 40)
THREADS = 8
WORK_SECONDS = 0.005
OFFERED = 500
"""Jobs a second."""
BATCH, MOST_BATCH = 10, 200
PRIORITIES = (120, 160, 200, 240)
QUEUES = 8
LAST_SECONDS = 60.0
LEAST_SHARE = 0.98
P99_MS = 25.0


def run(bench: Bench) -> Iterator[Row]:
    """Offer jobs at a steady pace while a snapshot is kept; once each, for it takes long."""
    bench.use("main")
    for workers in WORKERS:
        yield from _hold(bench, workers)


def _hold(bench: Bench, workers: int) -> Iterator[Row]:
    seconds = bench.size(600, 10)
    last = min(LAST_SECONDS, seconds / 2)
    bench.reset()
    bench.make_queues([f"t{number}" for number in range(QUEUES)], num_slots=UNLIMITED, paused=False)
    with bench.fleet(workers, threads=THREADS, seconds=WORK_SECONDS) as fleet:
        bench.wait_until_idle(fleet)
        _offer(bench, fleet, 2.0)
        bench.wait_until_done(fleet)
        bench.vacuum()
        with _snapshot(bench):
            meter = bench.meter(fleet)
            early = _offer(bench, fleet, seconds - last)
            began, since = bench.value("SELECT clock_timestamp()"), time.monotonic()
            late = _offer(bench, fleet, last)
            end = bench.value("SELECT clock_timestamp()")
            cost = meter.read()
            told = fleet.ask(since)
        bench.wait_until_done(fleet)
    every = bench.value("SELECT count(*) FROM tenantqueue_job_history")
    bench.check_finished(every)
    ended = bench.value(
        "SELECT count(*) FROM tenantqueue_job_history WHERE finished_at BETWEEN %s AND %s",
        *(began, end),
    )
    wanted = OFFERED * last
    what = f"{workers} workers, snapshot held for {seconds} s, {OFFERED} jobs/s"
    yield Row(
        "held",
        f"ended in the last {last:.0f} s of what is offered, {what}",
        "×",
        [Sample(ratio(ended, wanted), early + late, cost, _note(late / last, cost))],
        target=at_least(LEAST_SHARE),
        digits=3,
    )
    for percent in (50, 99):
        yield Row(
            "held",
            f"claim p{percent} in the last {last:.0f} s, {what}",
            "ms",
            [Sample(1000 * percentile(told.seconds, percent), note=f"{told.claims:,} claims")],
            higher_is_better=False,
            target=at_most(P99_MS) if percent == 99 else None,
            digits=2,
        )


def _note(offered: float, cost: Cost) -> str:
    python = cost.python_cpu_seconds / cost.seconds
    return f"{offered:.0f} jobs/s were put in; Python of the workers {python:.2f} cores"


@contextmanager
def _snapshot(bench: Bench) -> Iterator[None]:
    """Keep a snapshot for as long as the block lasts."""
    with bench.connect() as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM tenantqueue_tenantqueue")
        yield
        connection.execute("ROLLBACK")


def _offer(bench: Bench, fleet: Fleet, seconds: float) -> int:
    """Put jobs in at the pace of OFFERED, in all priorities and queues; return how many."""
    batches = [
        tasks.noop_sync.using(tenant=f"t{number % QUEUES}", priority=priority)
        for number in range(QUEUES)
        for priority in PRIORITIES
    ]
    began, made = time.monotonic(), 0
    for batch in cycle(batches):
        passed = time.monotonic() - began
        if passed >= seconds:
            break
        missing = int(passed * OFFERED) - made
        if missing < BATCH:
            time.sleep((BATCH - missing) / OFFERED)
            continue
        fleet.check()
        batch.enqueue_many([()] * min(missing, MOST_BATCH))
        made += min(missing, MOST_BATCH)
    return made
