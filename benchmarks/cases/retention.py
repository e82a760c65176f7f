"""A long history is shortened while jobs are enqueued and claimed."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.conf import settings
from django.db import connection
from django.test import override_settings

from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.models import TenantQueue
from django_tenantqueue.operations import maintain
from django_tenantqueue.operations.claim import Claimer
from django_tenantqueue.queries import workers as worker_queries
from django_tenantqueue.queries.finish import Finished
from django_tenantqueue.queries.round_trip import exchange
from django_tenantqueue.states import State
from django_tenantqueue.worker.connection import connect

from ..bench import Bench
from ..bench_app import tasks
from ..claiming import ROOM, register_worker
from ..fill import MONTHS, add_waiting, make_history
from ..measure import percentile, ratios
from ..processes import Processes, environment
from ..results import Incorrect, Row, Sample, at_most

MOST_SECONDS = 1.0
MOST_MILLISECONDS = 100
WITHIN = 1.2
TENANTS = 1000
"""Tenants that the history is of: fill.py puts its jobs into queues with these ids."""
PRUNED = 100
"""Tenants that are pruned in each round: a tenth of the history."""
TURNS = 5
"""How often a round pauses and resumes pruning: what the load leaves behind makes later claims
slower, and the server's own work comes at any time."""
AFTER_SECONDS = 0.5
"""How long enqueues and claims are watched after a drop: its files are removed at the end."""


@dataclass(slots=True)
class Load:
    """Enqueues and claims, each in a thread with its own connection; what each took in ms."""

    bench: Bench
    queue_id: int
    enqueues: list[float] = field(default_factory=list)
    claims: list[float] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Enqueue and claim inside the block."""
        threads = [
            threading.Thread(target=self._run, args=[f]) for f in (self._enqueue, self._claim)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()
        if self.errors:
            raise Incorrect(f"enqueue or claim failed: {self.errors[0]!r}") from self.errors[0]

    def _run(self, step: object) -> None:
        try:
            step()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self.errors.append(error)
        finally:
            connection.close()

    def _enqueue(self) -> None:
        while not self._ended.wait(0.005):
            began = time.perf_counter()
            tasks.noop_async.using(tenant="load").delay()
            self.enqueues.append(1000 * (time.perf_counter() - began))

    def _claim(self) -> None:
        """Claim ten jobs and end the ten before in one round trip, as a worker does."""
        own, other = connect("default", "benchmark"), self.bench.connect()
        worker_id = register_worker(own)
        claimer = Claimer(worker_id)
        ended: list[Finished] = []
        try:
            while not self._ended.is_set():
                request = claimer.request(0, ROOM)
                began = time.perf_counter()
                answer = exchange(own, worker_id, finished=ended, request=request)
                self.claims.append(1000 * (time.perf_counter() - began))
                claimer.learn(request, answer)
                jobs = sorted(answer.jobs, key=lambda job: job.id)
                ended = [Finished(j.id, j.claim_seq, State.SUCCESS.value, 0.0) for j in jobs]
                for job in jobs:
                    claimer.places.finished(job.queue_id)
                add_waiting(other, [self.queue_id], len(jobs))
            exchange(own, worker_id, finished=ended)
            worker_queries.delete_worker(own, worker_id)
        finally:
            own.close()
            other.close()


def run(bench: Bench) -> Iterator[Row]:
    """Prune tenants of a long history, then drop its months, under load."""
    rows = bench.size(10_000_000, 100_000)
    bench.use("retention")
    bench.reset()
    queue_id = _fill(bench, rows)
    pruned = [_prune(bench, queue_id, round_) for round_ in range(bench.repeat)]
    plain, beside, deleted = (list(values) for values in zip(*pruned, strict=True))
    yield _row("claims without pruning, p99", "ms", plain)
    yield _row(f"claims while {PRUNED} tenants are pruned, p99", "ms", beside)
    shares = [Sample(share) for share in ratios(*([s.value for s in v] for v in (beside, plain)))]
    yield _row("the second against the first", "×", shares, WITHIN)
    yield _row("jobs pruned per second", "jobs/s", deleted, better=True)
    dropped = [_drop(bench, queue_id, round_) for round_ in range(min(bench.repeat, MONTHS - 2))]
    month = f"a month of {rows // MONTHS:,} jobs is dropped"
    for place, (what, unit, most) in enumerate(
        (
            (month, "s", MOST_SECONDS),
            ("longest enqueue meanwhile", "ms", MOST_MILLISECONDS),
            ("longest claim with ends meanwhile", "ms", MOST_MILLISECONDS),
        )
    ):
        yield _row(what, unit, [Sample(values[place]) for values in dropped], most)
    RetentionRule.objects.all().delete()
    bench.reset()


def _row(
    what: str, unit: str, samples: list[Sample], most: float | None = None, *, better: bool = False
) -> Row:
    target = None if most is None else at_most(most)
    return Row("retention", what, unit, samples, higher_is_better=better, target=target, digits=2)


def _fill(bench: Bench, rows: int) -> int:
    """Make the history and the queues of its tenants; return the id of the queue of the load."""
    make_history(bench, rows)
    TenantQueue.objects.bulk_create(
        TenantQueue(id=number, tenant=f"tenant-{number}") for number in range(1, TENANTS + 1)
    )
    bench.db.execute(
        "SELECT setval(pg_get_serial_sequence('tenantqueue_tenantqueue', 'id'), %s)", [TENANTS]
    )
    queue = bench.make_queues(["load"], paused=False)[0]
    add_waiting(bench.db, [queue.pk], 1_000)
    bench.vacuum()
    return int(queue.pk)


def _prune(bench: Bench, queue_id: int, round_: int) -> tuple[Sample, Sample, Sample]:
    """Return the p99 of claims without and with a process that prunes, and the speed of that."""
    seconds = bench.size(20, 5) / TURNS
    RetentionRule.objects.all().delete()
    bench.settle()
    first = 1 + round_ * PRUNED
    for number in range(first, first + PRUNED):
        make_retention_rule(tenant=f"tenant-{number}", keep_days=1)
    last = first + PRUNED - 1
    count = "SELECT count(*) FROM tenantqueue_job_history WHERE queue_id BETWEEN %s AND %s"
    before = bench.value(count, first, last)
    alone: list[float] = []
    beside: list[float] = []
    with Processes() as commands:
        output = bench.directory / "prune.log"
        command = (sys.executable, "-m", "django", "tenantqueue", "prune")
        commands.start(command, environment(bench.url), output)
        commands.wait_for(lambda: bench.value(count, first, last) < before, "jobs are pruned")
        _pause(bench, commands)
        left = bench.value(count, first, last)
        took = 0.0
        for _ in range(TURNS):
            alone += _watch(bench, queue_id, seconds)
            commands.send(signal.SIGCONT)
            began = time.perf_counter()
            beside += _watch(bench, queue_id, seconds)
            _pause(bench, commands)
            took += time.perf_counter() - began
        gone = left - bench.value(count, first, last)
        commands.abandon()
    return (
        Sample(percentile(alone, 99), note=f"{len(alone):,} claims"),
        Sample(percentile(beside, 99), note=f"{len(beside):,} claims"),
        Sample(gone / took, note=f"{gone:,} of {before:,} jobs"),
    )


def _pause(bench: Bench, commands: Processes) -> None:
    """Stop a command between two of its transactions: an open one would hold up clean-up."""
    open_ones = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle'"
    )
    while True:
        commands.send(signal.SIGSTOP)
        if not bench.value(open_ones):
            return
        commands.send(signal.SIGCONT)
        time.sleep(0.005)


def _watch(bench: Bench, queue_id: int, seconds: float) -> list[float]:
    """Return how long claims take, in ms, without those that make their plans."""
    load = Load(bench, queue_id)
    with load.running():
        time.sleep(seconds)
    return load.claims[min(20, len(load.claims) // 2) :]


def _drop(bench: Bench, queue_id: int, round_: int) -> tuple[float, float, float]:
    """Return the seconds of a drop, and the longest enqueue and claim meanwhile in ms."""
    RetentionRule.objects.all().delete()
    bench.settle()
    keep = MONTHS - 2 - round_
    load = Load(bench, queue_id)
    kept = override_settings(TENANTQUEUE={**settings.TENANTQUEUE, "HISTORY_KEEP_MONTHS": keep})
    with kept, load.running():
        time.sleep(1.0)  # plans are made
        load.enqueues.clear()
        load.claims.clear()
        began = time.perf_counter()
        dropped = maintain.drop_history("default")
        seconds = time.perf_counter() - began
        time.sleep(AFTER_SECONDS)
    if len(dropped) != 1:
        raise Incorrect(f"one month should have been dropped, not {dropped}")
    return seconds, max(load.enqueues), max(load.claims)
