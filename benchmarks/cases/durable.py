"""How fast this machine keeps commits: the reference for everything that commits."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..bench import Bench
from ..measure import percentile
from ..results import Row, Sample


def run(bench: Bench) -> Iterator[Row]:
    """Commit single rows, one after the other, on one connection."""
    bench.use("main")
    bench.db.execute(
        "CREATE TABLE IF NOT EXISTS benchmark_commit (id bigint PRIMARY KEY, note text)"
    )
    commits = bench.size(1000, 200)
    yield Row(
        "durable",
        "single-row commits, one connection",
        "commits/s",
        bench.rounds(lambda: _commit(bench, commits)),
    )


def _commit(bench: Bench, commits: int) -> Sample:
    bench.db.execute("TRUNCATE benchmark_commit")
    insert = b"INSERT INTO benchmark_commit VALUES (%s, 'a row of its own')"
    bench.db.execute(insert, [-1], prepare=True)
    bench.settle()
    meter = bench.meter()
    taken = []
    for number in range(commits):
        began = time.perf_counter()
        bench.db.execute(insert, [number], prepare=True)
        taken.append(time.perf_counter() - began)
    cost = meter.read()
    p50, p99 = (percentile(taken, p) * 1000 for p in (50, 99))
    return Sample(commits / sum(taken), commits, cost, f"p50 {p50:.2f} ms, p99 {p99:.2f} ms")
