"""Functions of Django's task framework that do nothing, beside django-tasks-db in the same run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from django.db import transaction

from ..bench import Bench
from ..bench_app import functions
from ..processes import Processes, environment
from ..results import Incorrect, Row, Sample, at_least

KINDS: dict[str, Any] = {"async": functions.noop_async, "sync": functions.noop_sync}


def run(bench: Bench) -> Iterator[Row]:
    """Measure both kinds with one process, and one `db_worker` if that package is installed."""
    bench.use("main")
    jobs = bench.size(20_000, 2_000)
    rates = bench.rounds(lambda: {kind: _ours(bench, kind, jobs) for kind in KINDS})
    for kind in KINDS:
        yield Row("django_tasks", f"{kind}, {jobs:,} jobs", "jobs/s", [r[kind] for r in rates])
    if find_spec("django_tasks_db") is None:
        return
    few = bench.size(500, 100)
    pairs = bench.rounds(lambda: (_ours(bench, "sync", jobs), _theirs(bench, few)))
    yield Row("django_tasks", f"django-tasks-db, {few:,} jobs", "jobs/s", [p[1] for p in pairs])
    yield Row(
        "django_tasks",
        "sync, compared with django-tasks-db",
        "×",
        [Sample(ours.value / theirs.value) for ours, theirs in pairs],
        target=at_least(20),
        digits=1,
    )


def _ours(bench: Bench, kind: str, jobs: int) -> Sample:
    bench.reset()
    bench.make_queues(["wide"])
    task = KINDS[kind].using(tenant="wide")
    with transaction.atomic():
        for _ in range(jobs):
            task.enqueue()
    bench.vacuum()
    with bench.workers() as workers:
        bench.wait_until_idle(workers)
        meter = bench.meter(workers)
        bench.resume()
        bench.wait_until_done(workers)
        cost = meter.read()
    return Sample(bench.check_finished(jobs).rate, jobs, cost)


class _Worker(Processes):
    """A `db_worker` that ends when no task is left."""

    what = "a db_worker"


def _theirs(bench: Bench, jobs: int) -> Sample:
    from django_tasks_db.models import DBTaskResult

    DBTaskResult.objects.all().delete()
    task = functions.noop_sync.using(backend="db")
    with transaction.atomic():
        for _ in range(jobs):
            task.enqueue()
    command = [sys.executable, "-m", "django", "db_worker", "--backend", "db", "--queue-name", "*"]
    done = DBTaskResult.objects.successful()
    with _Worker() as worker:
        worker.start(command, environment(bench.url), bench.directory / "db-worker.log")
        worker.wait_for(lambda: done.count() == jobs, "django-tasks-db has run all")
    times = done.order_by("started_at").values_list("started_at", "finished_at")
    seconds = (max(end for _, end in times) - times[0][0]).total_seconds()
    if DBTaskResult.objects.count() != jobs:
        raise Incorrect("django-tasks-db has lost a task")
    return Sample(jobs / seconds, jobs)
