"""From `kill -9` to the next start of the job that ran."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

from ..bench import Bench, read_log
from ..bench_app import tasks
from ..results import Incorrect, Row, Sample, at_most
from ..workers import Workers

CHILD_SECONDS = 1.0
GROUP_SECONDS = 5.0
PATIENCE = 60.0


def run(bench: Bench) -> Iterator[Row]:
    """Kill one child, then a supervisor with its children while another worker is idle."""
    bench.use("main")
    kills = bench.size(10, 2)
    for what, measure, bound in (
        ("one child is killed", _kill_child, CHILD_SECONDS),
        ("a whole worker is killed, another is idle", _kill_worker, GROUP_SECONDS),
    ):
        seconds = [measure(bench, number) for number in range(kills)]
        note = f"of {kills}; the longest {max(seconds):.2f} s"
        yield Row(
            "rescue",
            f"{what}: its job starts again after",
            "s",
            [Sample(median(seconds), note=note)],
            higher_is_better=False,
            target=at_most(bound),
            digits=2,
        )


def _kill_child(bench: Bench, number: int) -> float:
    with _started(bench, 1) as workers:
        return _seconds_to_restart(bench, workers, number, workers.kill_child)


def _kill_worker(bench: Bench, number: int) -> float:
    with _started(bench, 2) as workers:
        return _seconds_to_restart(bench, workers, number, workers.kill_command_of)


def _started(bench: Bench, commands: int) -> Workers:
    bench.reset()
    bench.make_queues(["wide"], paused=False)
    bench.new_log()
    workers = bench.workers(commands=commands)
    bench.wait_until_idle(workers)
    return workers


def _seconds_to_restart(
    bench: Bench, workers: Workers, number: int, kill: Callable[[int], None]
) -> float:
    job = tasks.linger_once.using(tenant="wide").delay(number)
    _wait_for_starts(bench, 1)
    pid = bench.value(
        "SELECT w.pid FROM tenantqueue_job_hot j JOIN tenantqueue_worker w ON w.id = j.worker_id "
        "WHERE j.id = %s",
        job.pk,
    )
    killed = time.monotonic_ns()
    kill(pid)
    _wait_for_starts(bench, 2)
    bench.wait_until_done(workers)
    return (max(line.start for line in read_log(bench.log)) - killed) / 1e9


def _wait_for_starts(bench: Bench, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(read_log(bench.log)) < count:
        if time.monotonic() > deadline:
            raise Incorrect(f"the job has not started {count} times within {PATIENCE:.0f} s")
        time.sleep(0.005)
