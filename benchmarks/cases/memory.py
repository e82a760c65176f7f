"""What a worker holds after some work: memory of a child, connections to the database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ..bench import Bench
from ..results import Incorrect, Row, Sample, at_most
from ..server import APPLICATION
from .noop import KINDS, fill

MOST_MB = 80
MOST_GROWTH = 1.1
MOST_CONNECTIONS_BESIDE = 2
MIB = 2**20


def run(bench: Bench) -> Iterator[Row]:
    """Let one child do all jobs, and two do as many each."""
    bench.use("main")
    jobs = bench.size(20_000, 2_000)
    for kind in KINDS:
        samples = bench.rounds(partial(_memory, bench, kind, jobs))
        yield Row(
            "memory",
            f"RSS of a child after {jobs:,} {kind} jobs",
            "MB",
            samples,
            higher_is_better=False,
            target=at_most(MOST_MB),
            digits=1,
        )
    few, many = bench.size(10_000, 2_000), bench.size(100_000, 10_000)
    for kind in KINDS:
        yield Row(
            "memory",
            f"RSS of a child after {many:,} {kind} jobs against {few:,}",
            "×",
            bench.rounds(partial(_growth, bench, kind, few, many)),
            higher_is_better=False,
            target=at_most(MOST_GROWTH),
            digits=3,
        )
    for kind in KINDS:
        yield Row(
            "memory",
            f"most connections, --processes 2, {kind} jobs",
            "",
            bench.rounds(partial(_connections, bench, kind, 2 * jobs)),
            higher_is_better=False,
            target=at_most(2 + MOST_CONNECTIONS_BESIDE),
        )


def _memory(bench: Bench, kind: str, jobs: int) -> Sample:
    fill(bench, kind, jobs)
    with bench.workers() as workers:
        bench.wait_until_idle(workers)
        (child,) = workers.children()
        before = child.memory_full_info()
        bench.resume()
        bench.wait_until_done(workers)
        if workers.children() != [child]:
            raise Incorrect("the child that did the jobs was replaced")
        after = child.memory_full_info()
    bench.check_finished(jobs)
    return Sample(
        after.rss / MIB,
        note=f"USS {after.uss / MIB:.1f} MB; before the first job RSS {before.rss / MIB:.1f}",
    )


def _growth(bench: Bench, kind: str, few: int, many: int) -> Sample:
    """Let one child do a few jobs and then many more."""
    fill(bench, kind, few)
    with bench.workers() as workers:
        bench.wait_until_idle(workers)
        (child,) = workers.children()
        bench.resume()
        bench.wait_until_done(workers)
        before = child.memory_info().rss
        KINDS[kind].using(tenant="wide").enqueue_many([()] * (many - few))
        bench.wait_until_done(workers)
        if workers.children() != [child]:
            raise Incorrect("the child that did the jobs was replaced")
        after = child.memory_info().rss
    bench.check_finished(many)
    return Sample(after / before, note=f"{before / MIB:.1f} MB, then {after / MIB:.1f}")


def _connections(bench: Bench, kind: str, jobs: int) -> Sample:
    fill(bench, kind, jobs)
    with bench.workers(processes=2) as workers:
        bench.wait_until_idle(workers)
        with _watch(bench) as counts:
            bench.resume()
            bench.wait_until_done(workers)
        memory = [child.memory_info().rss / MIB for child in workers.children()]
    bench.check_finished(jobs)
    shares = bench.db.execute(
        "SELECT count(*) FROM tenantqueue_job_history GROUP BY worker_id ORDER BY 1"
    ).fetchall()
    did = " + ".join(f"{share:,}" for (share,) in shares)
    return Sample(max(counts), note=f"they did {did}, RSS {min(memory):.1f}–{max(memory):.1f} MB")


@contextmanager
def _watch(bench: Bench) -> Iterator[list[int]]:
    """Count the connections that are not the benchmark's own, again and again."""
    counts: list[int] = []
    ended = threading.Event()

    def look() -> None:
        with bench.connect() as connection:
            while not ended.wait(0.02):
                row = connection.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND backend_type = 'client backend' AND application_name <> %s",
                    [APPLICATION],
                    prepare=True,
                ).fetchone()
                counts.append(row[0] if row is not None else 0)

    thread = threading.Thread(target=look, name="connections")
    thread.start()
    try:
        yield counts
    finally:
        ended.set()
        thread.join()
