"""Jobs that do nothing, all of one queue without limit: what the queue itself costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django_tenantqueue.tasks import Task

from ..bench import Bench
from ..bench_app import tasks
from ..results import Row, Sample

KINDS: dict[str, Task[[], Any]] = {"async": tasks.noop_async, "sync": tasks.noop_sync}


def run(bench: Bench) -> Iterator[Row]:
    """Measure both kinds of tasks, with one and with two processes."""
    bench.use("main")
    jobs = bench.size(20_000, 2_000)
    for kind in KINDS:
        for processes in (1, 2):
            yield Row(
                "noop",
                f"{kind}, {jobs:,} jobs, --processes {processes}",
                "jobs/s",
                bench.rounds(partial(_drain, bench, kind, processes, jobs)),
            )


def fill(bench: Bench, kind: str, jobs: int) -> None:
    """Put jobs into one queue without limit that is paused."""
    bench.reset()
    bench.make_queues(["wide"])
    KINDS[kind].using(tenant="wide").enqueue_many([()] * jobs)
    bench.vacuum()


def _drain(bench: Bench, kind: str, processes: int, jobs: int) -> Sample:
    fill(bench, kind, jobs)
    with bench.workers(processes=processes) as workers:
        bench.wait_until_idle(workers)
        meter = bench.meter(workers)
        bench.resume()
        bench.wait_until_done(workers)
        cost = meter.read()
    return Sample(bench.check_finished(jobs).rate, jobs, cost)
