"""HTTP jobs: one worker process, a receiver that answers after 50 ms on the same machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from urllib.request import urlopen

import psutil

from django_tenantqueue.contrib.http import http_job

from ..bench import Bench
from ..processes import Processes, environment
from ..results import Incorrect, Row, Sample, at_least, at_most

LATENCY = 0.05
IN_FLIGHT = 500
LIMIT = 20
"""Slots of the queue of one endpoint."""
MIB = 2**20


class Receiver(Processes):
    """A receiver in a process of its own."""

    what = "the receiver"

    def __init__(self, bench: Bench, latency: float = LATENCY) -> None:
        super().__init__()
        self.start(
            [sys.executable, "-m", "benchmarks.receiver", str(latency)],
            environment(""),
            bench.directory / "receiver.log",
            stdout=subprocess.PIPE,
        )
        output = self._commands[0].stdout
        assert output is not None
        self.url = f"http://127.0.0.1:{int(output.readline())}"

    def counts(self) -> dict[str, int]:
        """Return what it has counted."""
        with urlopen(self.url, timeout=10) as answer:
            return json.load(answer)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the receiver, which belongs to the benchmark."""
        times = psutil.Process(self._commands[0].pid).cpu_times()
        return times.user + times.system


def run(bench: Bench) -> Iterator[Row]:
    """Send to one endpoint as fast as it goes, beside one that is limited by its queue."""
    bench.use("main")
    jobs = bench.size(10_000, 1_000)
    samples = bench.rounds(lambda: _send(bench, jobs))
    what = f"{jobs:,} jobs, receiver of 50 ms, {IN_FLIGHT} in flight"
    yield Row("http", what, "jobs/s", [rate for rate, _ in samples], target=at_least(1500))
    yield Row(
        "http",
        f"{what}: memory of the child",
        "MB",
        [memory for _, memory in samples],
        higher_is_better=False,
        target=at_most(200),
    )
    seconds = [_kill(bench) for _ in range(bench.size(5, 1))]
    yield Row(
        "http",
        f"kill -9 of a worker with {IN_FLIGHT} in flight: another has sent all again after",
        "s",
        [Sample(median(seconds), note=f"of {len(seconds)}; the longest {max(seconds):.2f} s")],
        higher_is_better=False,
        target=at_most(5.0),
        digits=2,
    )


def _kill(bench: Bench) -> float:
    """Kill a worker whose requests have no answers; return the seconds until all are repeated."""
    bench.reset()
    options = ("--async-slots", str(IN_FLIGHT))
    with Receiver(bench, latency=3600.0) as receiver:
        bench.make_queues(["wide"], paused=False)
        with bench.workers(options=options) as first:
            bench.wait_until_idle(first)
            http_job.using(tenant="wide").enqueue_many([receiver.url] * IN_FLIGHT)
            first.wait_for(lambda: receiver.counts()["requests"] == IN_FLIGHT, "all are sent")
            with bench.workers(options=options) as second:
                second.wait_for(
                    lambda: bench.value("SELECT count(*) FROM tenantqueue_worker") == 2,
                    "the other has signed on",
                )
                bench.settle()
                killed = time.monotonic()
                first.abandon()
                second.wait_for(
                    lambda: receiver.counts()["requests"] == 2 * IN_FLIGHT, "all are sent again"
                )
                seconds = time.monotonic() - killed
                second.abandon()
        counts = receiver.counts()
    if counts["requests"] != 2 * counts["jobs"]:
        raise Incorrect(f"each id was to be received twice: {counts}")
    return seconds


def _send(bench: Bench, jobs: int) -> tuple[Sample, Sample]:
    bench.reset()
    limited = jobs // 20
    with Receiver(bench) as receiver:
        bench.make_queues(["wide"])
        bench.make_queues(["narrow"], num_slots=LIMIT)
        for tenant, count in (("wide", jobs - limited), ("narrow", limited)):
            calls = [(f"{receiver.url}/{tenant}", {"n": number}) for number in range(count)]
            http_job.using(tenant=tenant).enqueue_many(calls)
        bench.vacuum()
        with bench.workers(options=("--async-slots", str(IN_FLIGHT))) as workers:
            bench.wait_until_idle(workers)
            meter = bench.meter(workers, beside=receiver)
            bench.resume()
            bench.wait_until_done(workers)
            cost = meter.read()
            (child,) = workers.children()
            memory = child.memory_info().rss / MIB
        counts = receiver.counts()
    finished = bench.check_finished(jobs)
    if counts["requests"] != jobs or counts["jobs"] != jobs:
        raise Incorrect(f"{jobs} jobs ended, and the receiver counted {counts}")
    most = counts["most"]
    if most["/narrow"] > LIMIT or most["/wide"] > IN_FLIGHT:
        raise Incorrect(f"at once were {most}: {LIMIT} and {IN_FLIGHT} are allowed")
    note = f"at once: {most['/wide']} and, with {LIMIT} slots, {most['/narrow']}"
    return Sample(finished.rate, jobs, cost, note), Sample(memory)
