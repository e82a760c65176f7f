"""Three jobs at once for each of a hundred tenants, and four workers that press on the limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..bench import Bench, LogLine, read_log
from ..bench_app import tasks
from ..measure import most_by_key
from ..results import Incorrect, Row, Sample

TENANTS = 100
NUM_SLOTS = 3
WORKERS = 4


def run(bench: Bench) -> Iterator[Row]:
    """Run all jobs to their end."""
    bench.use("main")
    each = bench.size(1000, 50)
    yield Row(
        "caps",
        f"{TENANTS} tenants × {each:,} jobs × 5 ms, {NUM_SLOTS} slots, {WORKERS} workers",
        "jobs/s",
        bench.rounds(lambda: _drain(bench, each)),
    )


def fill(bench: Bench, jobs: dict[int, int]) -> None:
    """Put `each` jobs of each tenant into paused queues with three slots each."""
    bench.reset()
    bench.make_queues([f"t{tenant}" for tenant in jobs], num_slots=NUM_SLOTS)
    for tenant, count in jobs.items():
        calls = [(tenant, number) for number in range(count)]
        tasks.work.using(tenant=f"t{tenant}").enqueue_many(calls)
    bench.vacuum()


def check_log(lines: list[LogLine]) -> int:
    """Return the most jobs of one tenant that ran at once.

    Raises Incorrect when they exceeded the slots, or when a job ran twice.
    """
    most = max(most_by_key((line.tenant, line.start, line.end) for line in lines).values())
    if most > NUM_SLOTS:
        raise Incorrect(f"{most} jobs of a tenant ran at once, {NUM_SLOTS} are allowed")
    runs = Counter((line.tenant, line.number) for line in lines)
    twice = [job for job, times in runs.items() if times > 1]
    if twice:
        raise Incorrect(
            f"{len(twice)} jobs ran more than once, such as (tenant, number) {twice[0]}"
        )
    return most


def check_rows(bench: Bench) -> int:
    """Return the most slots of a queue that were taken at once, by the rows. Raises Incorrect."""
    most = max(most_by_key(bench.row_intervals()).values())
    if most > NUM_SLOTS:
        raise Incorrect(f"{most} slots of a queue were taken at once, it has {NUM_SLOTS}")
    return most


def _drain(bench: Bench, each: int) -> Sample:
    jobs = TENANTS * each
    fill(bench, dict.fromkeys(range(TENANTS), each))
    log = bench.new_log()
    with bench.workers(commands=WORKERS) as workers:
        bench.wait_until_idle(workers)
        meter = bench.meter(workers)
        bench.resume()
        bench.wait_until_done(workers)
        cost = meter.read()
    finished = bench.check_finished(jobs)
    lines = read_log(log)
    most, taken = check_log(lines), check_rows(bench)
    if len(lines) != jobs:
        raise Incorrect(f"{jobs} jobs ended, but {len(lines)} bodies ran")
    return Sample(finished.rate, jobs, cost, f"at once: {most} running, {taken} slots taken")
