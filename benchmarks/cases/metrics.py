"""A scrape of the metrics: its time with few rows behind it, and with very many."""

from __future__ import annotations

import time
from collections.abc import Iterator

from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_tenantqueue.contrib.prometheus.collector import registry
from django_tenantqueue.contrib.prometheus.models import FigureTotal
from django_tenantqueue.contrib.prometheus.serve import render
from django_tenantqueue.contrib.prometheus.totals import COUNTED_TASKS
from django_tenantqueue.operations import maintain

from ..bench import Bench
from ..bench_app import tasks
from ..fill import add_waiting, make_history
from ..measure import percentile
from ..results import Row, Sample, at_most
from .pages import FIGURES, WORKERS, timed_statements

WITHIN_MILLISECONDS = 200


def run(bench: Bench) -> Iterator[Row]:
    """Scrape with a backlog, at first without a history and then with a long one."""
    bench.use("metrics")
    tenants, waiting = bench.size(5_000, 100), bench.size(1_000_000, 10_000)
    history = bench.size(2_000_000, 20_000)
    _fill(bench, tenants, waiting)
    what = f"a scrape, {tenants:,} tenants, {waiting:,} waiting"
    yield _row(f"{what}, no history", _scrapes(bench))
    make_history(bench, history)
    bench.vacuum()
    yield _row(f"{what}, {history:,} ended", _scrapes(bench))
    bench.reset()


def _row(what: str, samples: list[Sample]) -> Row:
    return Row(
        "metrics",
        what,
        "ms",
        samples,
        higher_is_better=False,
        target=at_most(WITHIN_MILLISECONDS),
    )


def _fill(bench: Bench, tenants: int, waiting: int) -> None:
    """Fill the tables: a third of the queues is paused, a third full; figures are all there."""
    bench.reset()
    queues = bench.make_queues([f"tenant-{n:05}" for n in range(tenants)], paused=False)
    add_waiting(bench.db, [queue.pk for queue in queues], waiting // tenants)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenantqueue_tenantqueue SET paused = mod(id, 3) = 0, "
            "num_slots = CASE mod(id, 3) WHEN 1 THEN 0 ELSE 5 END"
        )
        cursor.execute("TRUNCATE tenantqueue_figure, tenantqueue_figuretotal, tenantqueue_worker")
        cursor.execute(WORKERS, {"count": bench.size(100, 5)})
        for minutes, periods in ((1, 180), (60, 192), (1440, 400)):
            params = {"minutes": minutes, "periods": periods, "queues": 300}
            cursor.execute(FIGURES, {**params, "task": tasks.noop_async.name})
    maintain.thin_figures("default")  # makes the counters
    assert FigureTotal.objects.count() > COUNTED_TASKS
    bench.vacuum()


def _scrapes(bench: Bench) -> list[Sample]:
    """Scrape, once what was filled is on the disk."""
    bench.server.checkpoint()
    bench.settle()
    return bench.rounds(lambda: _scrape(bench.size(20, 3)))


def _scrape(times: int) -> Sample:
    """Return the p95 of some scrapes, each with a connection of its own."""
    seen, longest, statements = [], 0.0, 0
    found = registry("default")
    for number in range(times + 1):
        ours: list[float] = []
        connection.close()
        began = time.perf_counter()
        with CaptureQueriesContext(connection) as captured, timed_statements(ours):
            body, _ = render(found, "")
        if number:
            seen.append(1000 * (time.perf_counter() - began))
            longest, statements = max(longest, *ours), len(captured) + len(ours)
    note = f"{statements} statements, the longest {longest:.0f} ms; {len(body):,} bytes"
    return Sample(percentile(seen, 95), note=note)
