"""One tenant with a great backlog, then many with little work: how long these wait."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..bench import STALL_SECONDS, Bench, LogLine, read_log
from ..results import Incorrect, Row, Sample, at_most
from .caps import WORKERS, check_log, check_rows, fill

BIG = 0
SMALL = range(1, 100)
EACH = 10


def run(bench: Bench) -> Iterator[Row]:
    """Measure from the first start of any job to the last end of the small tenants' jobs."""
    bench.use("main")
    backlog = bench.size(100_000, 5_000)
    yield Row(
        "fair",
        f"1 tenant × {backlog:,} jobs, then {len(SMALL)} × {EACH}: until the small ones are done",
        "s",
        bench.rounds(lambda: _measure(bench, backlog)),
        higher_is_better=False,
        target=at_most(1.0),
        digits=2,
    )


def _measure(bench: Bench, backlog: int) -> Sample:
    wanted = len(SMALL) * EACH
    fill(bench, {BIG: backlog, **dict.fromkeys(SMALL, EACH)})
    log = bench.new_log()
    with bench.workers(commands=WORKERS) as workers:
        bench.wait_until_idle(workers)
        meter = bench.meter(workers)
        bench.resume()
        deadline = time.monotonic() + STALL_SECONDS
        while len(_small(read_log(log))) < wanted:
            workers.check()
            if time.monotonic() > deadline:
                raise Incorrect(f"the small tenants are not done within {STALL_SECONDS:.0f} s")
            time.sleep(0.02)
        cost = meter.read()
        ran = len(read_log(log))
    lines = read_log(log)
    check_log(lines)
    check_rows(bench)
    _check_states(bench, lines, backlog + wanted)
    began = min(line.start for line in lines)
    ended = max(line.end for line in _small(lines))
    big = sum(1 for line in lines if line.tenant == BIG and line.start < ended)
    return Sample((ended - began) / 1e9, ran, cost, f"the big one had had {big} by then")


def _small(lines: list[LogLine]) -> list[LogLine]:
    return [line for line in lines if line.tenant != BIG]


def _check_states(bench: Bench, lines: list[LogLine], jobs: int) -> None:
    states = bench.states()
    if states.get("success") != len(lines) or sum(states.values()) != jobs:
        raise Incorrect(f"{jobs} jobs were put in and {len(lines)} ran; the rows say {states}")
    if set(states) - {"success", "ready"}:
        raise Incorrect(f"the workers have stopped, and left jobs behind: {states}")
