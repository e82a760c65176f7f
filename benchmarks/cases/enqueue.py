"""Putting jobs in: many at once, and one at a time against a bare INSERT of the same row."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import psycopg
from django.db import transaction

from django_tenantqueue.models import Job

from ..bench import Bench
from ..bench_app import tasks
from ..measure import ratios
from ..results import Cost, Incorrect, Row, Sample, at_least
from ..workers import Workers

COLUMNS = (
    "queue_id, lane, priority, is_async, state, run_at, expires_at, max_attempts, "
    "timeout_seconds, hard_timeout_seconds, task, source_type, source_id, source_method, args, "
    "labels, created_by, context"
)
"""What insert_job.sql writes."""
JSON_COLUMNS = ("args", "context")
OWN_COLUMNS = ("id", "created_at", "run_at")
"""What differs between two rows of the same call."""
BLOCKS = 10
OF_BARE = 0.7

Both = tuple[Sample, Sample]


def run(bench: Bench) -> Iterator[Row]:
    """Measure bulk, then single jobs in autocommit mode and inside one transaction."""
    bench.use("main")
    rows = bench.size(10_000, 2_000)
    yield Row(
        "enqueue",
        f"enqueue_many of {rows:,}",
        "jobs/s",
        bench.rounds(lambda: _bulk(bench, rows)),
    )
    jobs = bench.size(2_000, 400)
    yield from _rows("autocommit, no worker", bench.rounds(lambda: _single(bench, jobs)), OF_BARE)
    awake = bench.rounds(lambda: _single(bench, jobs, workers=True))
    yield from _rows("autocommit, with an idle worker to wake", awake, None)
    within = bench.rounds(lambda: _single(bench, jobs, one_transaction=True))
    yield from _rows("inside one transaction", within, None)


def _rows(what: str, both: list[Both], bound: float | None) -> Iterator[Row]:
    delayed, bare = [pair[0] for pair in both], [pair[1] for pair in both]
    yield Row("enqueue", f".delay(), {what}", "jobs/s", delayed)
    yield Row("enqueue", f"bare INSERT, {what}", "rows/s", bare)
    shares = ratios([sample.value for sample in delayed], [sample.value for sample in bare])
    yield Row(
        "enqueue",
        f".delay() / bare INSERT, {what}",
        "×",
        [Sample(share) for share in shares],
        target=None if bound is None else at_least(bound),
        digits=2,
    )


def _bulk(bench: Bench, rows: int) -> Sample:
    bench.reset()
    bench.make_queues(["wide"])
    task = tasks.noop_async.using(tenant="wide")
    task.enqueue_many([()])
    bench.settle()
    meter = bench.meter()
    began = time.perf_counter()
    ids = task.enqueue_many([()] * rows)
    seconds = time.perf_counter() - began
    cost = meter.read()
    stored = bench.value("SELECT count(*) FROM tenantqueue_job_hot WHERE state = 'ready'")
    if stored != rows + 1 or len(set(ids)) != rows:
        raise Incorrect(f"{rows + 1} jobs were put in, {stored} are stored")
    return Sample(rows / seconds, rows, cost)


def _single(
    bench: Bench, jobs: int, *, workers: bool = False, one_transaction: bool = False
) -> Both:
    """Alternate between both ways in blocks, so that both meet the same machine."""
    bench.reset()
    bench.make_queues(["wide"], paused=False)
    task = tasks.noop_async.using(tenant="wide")
    for _ in range(10):
        job = task.delay()
    with bench.connect() as connection:
        statement, params = bare_insert(connection, job)
        _check_same(connection, job, statement, params)
        bench.vacuum()

        def delay() -> None:
            task.delay()

        def insert() -> None:
            connection.execute(statement, params, prepare=True)

        def django_block() -> Any:
            return transaction.atomic() if one_transaction else nullcontext()

        def bare_block() -> Any:
            return connection.transaction() if one_transaction else nullcontext()

        blocks = {"delay": (delay, django_block), "bare": (insert, bare_block)}
        with bench.workers() if workers else nullcontext() as running:
            if running is None:
                bench.settle()
            else:
                bench.wait_until_idle(running)
            seconds, costs = _alternate(bench, blocks, jobs // BLOCKS, running)
            if running is not None:
                bench.wait_until_done(running)
    _check_count(bench, 11 + 2 * BLOCKS * (jobs // BLOCKS))
    done = BLOCKS * (jobs // BLOCKS)
    made = [Sample(done / seconds[name], done, _sum(costs[name])) for name in ("delay", "bare")]
    return made[0], made[1]


def _alternate(
    bench: Bench,
    blocks: dict[str, tuple[Callable[[], None], Callable[[], Any]]],
    each: int,
    workers: Workers | None,
) -> tuple[dict[str, float], dict[str, list[Cost]]]:
    seconds = dict.fromkeys(blocks, 0.0)
    costs: dict[str, list[Cost]] = {name: [] for name in blocks}
    for block in range(BLOCKS):
        for name in list(blocks) if block % 2 else list(reversed(blocks)):
            once, around = blocks[name]
            meter = bench.meter(beside=workers)
            began = time.perf_counter()
            with around():
                for _ in range(each):
                    once()
            seconds[name] += time.perf_counter() - began
            costs[name].append(meter.read())
    return seconds, costs


def _sum(costs: list[Cost]) -> Cost:
    server = [cost.server_cpu_seconds for cost in costs]
    seconds = sum(cost.seconds for cost in costs)
    return Cost(
        seconds=seconds,
        server_cpu_seconds=None if None in server else sum(s for s in server if s is not None),
        wal_bytes=sum(cost.wal_bytes or 0.0 for cost in costs),
        python_cpu_seconds=sum(cost.python_cpu_seconds for cost in costs),
        other_cores=sum(cost.other_cores * cost.seconds for cost in costs) / seconds,
    )


def bare_insert(connection: psycopg.Connection[Any], job: Job) -> tuple[bytes, list[object]]:
    """Return an INSERT of all the values that .delay() has stored, and the values."""
    columns = COLUMNS.split(", ")
    row = connection.execute(
        f"SELECT {COLUMNS} FROM tenantqueue_job_hot WHERE id = %s".encode(), [job.pk]
    ).fetchone()
    assert row is not None, "the job has been committed, and no worker runs yet"
    values: list[object] = [
        json.dumps(value) if name in JSON_COLUMNS and value is not None else value
        for name, value in zip(columns, row, strict=True)
    ]
    marks = ", ".join("%s::jsonb" if name in JSON_COLUMNS else "%s" for name in columns)
    return f"INSERT INTO tenantqueue_job_hot ({COLUMNS}) VALUES ({marks})".encode(), values


def _check_same(
    connection: psycopg.Connection[Any], job: Job, statement: bytes, params: list[object]
) -> None:
    """Insert one bare row; raise Incorrect when it differs from the row of .delay()."""
    bare = connection.execute(statement + b" RETURNING id", params).fetchone()
    assert bare is not None
    rows = connection.execute(
        "SELECT to_jsonb(j) - %s::text[] FROM tenantqueue_job_hot j WHERE id IN (%s, %s)",
        [list(OWN_COLUMNS), job.pk, bare[0]],
    ).fetchall()
    if len(rows) != 2 or rows[0] != rows[1]:
        raise Incorrect(f"the bare INSERT does not make the row of .delay(): {rows}")


def _check_count(bench: Bench, expected: int) -> None:
    states = bench.states()
    if sum(states.values()) != expected or set(states) - {"ready", "success"}:
        raise Incorrect(f"{expected} jobs were put in; the rows say {states}")
