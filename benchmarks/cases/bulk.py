"""One action on all jobs that match: failed jobs beside a long history are retried."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
from django.db import connection

from django_tenantqueue import control
from django_tenantqueue.states import State
from django_tenantqueue.testing import run_pending

from ..bench import Bench
from ..bench_app import tasks
from ..results import Incorrect, Row, Sample, at_most
from .backlog import use_deep
from .pages import timed_statements

MOST_MILLISECONDS = 1_000
MOST_MB = 20
MIB = 2**20
FAILED = (
    "INSERT INTO tenantqueue_job (queue_id, lane, priority, state, final, task, source_type, "
    "source_method, args, max_attempts, attempt, claim_seq, worker_id, queued_at, finished_at) "
    "SELECT %(queue)s, 240, 240, 'error', true, %(task)s, 'task', %(task)s, '{\"args\": []}', "
    "5, 5, 1, 1, now(), now() FROM generate_series(1, %(count)s)"
)


def run(bench: Bench) -> Iterator[Row]:
    """Retry all failed jobs of a tenant, three times over."""
    use_deep(bench)
    count = bench.size(100_000, 5_000)
    rounds = bench.rounds(lambda: _retry(bench, count))
    for title, unit, most, place in (
        (f"{count:,} failed jobs retried", "s", None, 0),
        ("longest statement", "ms", MOST_MILLISECONDS, 1),
        ("growth of the worker's memory", "MB", MOST_MB, 2),
    ):
        yield Row(
            "bulk",
            title,
            unit,
            [Sample(values[place]) for values in rounds],
            higher_is_better=False,
            target=None if most is None else at_most(most),
            digits=1,
        )
    bench.reset(history=False)


def _retry(bench: Bench, count: int) -> tuple[float, float, float]:
    """Return seconds, the longest statement in ms, and the growth of memory in MB."""
    bench.reset(history=False)
    (queue,) = bench.make_queues(["acme"], paused=True)
    values = {"queue": queue.pk, "task": tasks.noop_sync.name, "count": count}
    bench.db.execute(FAILED, values)
    bench.vacuum()
    job = control.bulk("retry", {"state": "error", "tenant": "acme", "task": tasks.noop_sync.name})
    process = psutil.Process()
    before = most = process.memory_info().rss
    milliseconds: list[float] = []

    def timed(execute: Callable[..., Any], *args: Any) -> Any:
        nonlocal most
        began = time.perf_counter()
        try:
            return execute(*args)
        finally:
            milliseconds.append(1000 * (time.perf_counter() - began))
            most = max(most, process.memory_info().rss)

    began = time.perf_counter()
    with connection.execute_wrapper(timed), timed_statements(milliseconds):
        run_pending()
    seconds = time.perf_counter() - began
    job.refresh()
    if job.state != State.SUCCESS or job.result != {"changed": count, "left": {}}:
        raise Incorrect(f"the job ended in {job.state} with {job.result_data}, {job.errors}")
    return seconds, max(milliseconds), (most - before) / MIB
