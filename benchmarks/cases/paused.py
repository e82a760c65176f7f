"""A job of another task, behind the backlog of a paused one in the same lane of a queue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from django_tenantqueue import control
from django_tenantqueue.models import TaskControl, TenantQueue

from ..bench import Bench, read_log
from ..bench_app import tasks
from ..fill import PRIORITY, add_waiting
from ..results import Incorrect, Row, Sample, at_most

WITHIN_SECONDS = 1.0
WITHIN_SECONDS_OF_A_MILLION = 5.0
PATIENCE_SECONDS = 60.0


def run(bench: Bench) -> Iterator[Row]:
    """Measure behind a short backlog, behind one with a rate, and behind a long one."""
    bench.use("main")
    short, long = bench.size(10_000, 1_000), bench.size(1_000_000, 10_000)
    cases: list[tuple[str, int, dict[str, Any], float]] = [
        ("1 slot", short, {"num_slots": 1}, WITHIN_SECONDS),
        (
            "5 slots, 5 starts a second",
            short,
            {"num_slots": 5, "max_per_second": 5, "burst": 1},
            WITHIN_SECONDS,
        ),
        ("1 slot", long, {"num_slots": 1}, WITHIN_SECONDS_OF_A_MILLION),
    ]
    for what, backlog, columns, within in cases:
        yield Row(
            "paused",
            f"until a job starts behind {backlog:,} of a paused task, {what}",
            "s",
            bench.rounds(partial(_behind, bench, backlog, columns)),
            higher_is_better=False,
            target=at_most(within),
            digits=2,
        )


def _behind(bench: Bench, backlog: int, columns: dict[str, Any]) -> Sample:
    bench.reset()
    TaskControl.objects.all().delete()
    (queue,) = bench.make_queues(["mixed"])
    TenantQueue.objects.filter(pk=queue.pk).update(**columns)
    add_waiting(bench.db, [queue.pk], backlog)
    bench.vacuum()
    log = bench.new_log()
    with bench.workers() as workers:
        bench.wait_until_idle(workers)
        control.pause(task=tasks.noop_async)
        tasks.stamp.using(tenant="mixed", priority=PRIORITY).delay(0)
        began = time.monotonic()
        bench.resume()
        while not (lines := read_log(log)):
            workers.check()
            if time.monotonic() - began > PATIENCE_SECONDS:
                raise Incorrect(f"the job has not started: {bench.states()}")
            time.sleep(0.005)
    (line,) = lines
    others = bench.value(
        "SELECT count(*) FROM tenantqueue_job_history WHERE task <> %s", tasks.stamp.name
    )
    TaskControl.objects.all().delete()
    if others:
        raise Incorrect(f"{others} jobs of a paused task have run")
    return Sample(line.start / 1e9 - began, 1)
