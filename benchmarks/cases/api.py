"""The HTTP API under gunicorn: one job in a request against the same view without INSERT; batches.

One client with one connection that is kept alive. Connections to the database are kept, too.
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from django_tenantqueue.operations.tokens import create_token

from ..bench import Bench
from ..measure import ratios
from ..processes import Processes, environment
from ..results import Incorrect, Row, Sample, at_least

BLOCKS = 10
BATCH = 1000
START_SECONDS = 60.0
TASK = "benchmarks.bench_app.tasks.noop_async"


class Site(Processes):
    """A gunicorn of one process with one thread, and a client of it."""

    what = "gunicorn"

    def __init__(self, bench: Bench, url: str, name: str, **env: str) -> None:
        super().__init__()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        options = ("-k", "gthread", "--threads", "1", "--keep-alive", "60")
        bind = ("-b", f"127.0.0.1:{self.port}")
        self.start(
            [sys.executable, "-m", "gunicorn", *options, *bind, "benchmarks.api_site:application"],
            environment(url, **env),
            bench.directory / f"{name}.log",
        )
        self.client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def wait(self, secret: str) -> None:
        """Wait until it answers."""
        self.headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with suppress(OSError, http.client.HTTPException):
                self.client.request("GET", "/api/tasks", headers=self.headers)
                self.client.getresponse().read()
                return
            self.client.close()
            time.sleep(0.1)
        raise Incorrect("gunicorn does not answer")

    def post(self, path: str, body: bytes) -> None:
        """Send a request, whose answer must be 201."""
        self.client.request("POST", path, body=body, headers=self.headers)
        answer = self.client.getresponse()
        told = answer.read()
        if answer.status != 201:
            raise Incorrect(f"{path} answered {answer.status}: {told[:300]!r}")


def run(bench: Bench) -> Iterator[Row]:
    """Measure single jobs, then batches."""
    bench.use("main")
    samples = bench.rounds(lambda: _round(bench))
    full, bare, batches = ([sample[n] for sample in samples] for n in range(3))
    yield Row("api", "one job a request, keep-alive", "requests/s", full)
    yield Row("api", "the same view without INSERT", "requests/s", bare)
    shares = ratios([sample.value for sample in full], [sample.value for sample in bare])
    yield Row(
        "api",
        "one job a request / without INSERT",
        "×",
        [Sample(share) for share in shares],
        target=at_least(0.6),
        digits=2,
    )
    yield Row("api", f"batches of {BATCH:,}", "jobs/s", batches, target=at_least(20_000))


def _round(bench: Bench) -> tuple[Sample, Sample, Sample]:
    bench.reset()
    bench.make_queues(["wide"])
    secret = create_token(f"benchmark {time.time_ns()}", tenant="wide")[1]
    one = json.dumps({"task": TASK}).encode()
    many = json.dumps({"jobs": [{"task": TASK}] * BATCH}).encode()
    each, batches = bench.size(100, 30), bench.size(30, 8)
    url = bench.url
    with (
        Site(bench, url, "api") as full,
        Site(bench, url, "api-bare", BENCHMARK_WITHOUT_INSERT="1") as bare,
    ):
        seconds = {full: 0.0, bare: 0.0}
        for site in seconds:
            site.wait(secret)
            _time(lambda site=site: site.post("/api/jobs", one), 10)
        full.post("/api/jobs/batch", many)
        for block in range(BLOCKS):
            for site in (full, bare) if block % 2 else (bare, full):
                seconds[site] += _time(lambda site=site: site.post("/api/jobs", one), each)
        spent = _time(lambda: full.post("/api/jobs/batch", many), batches)
    stored = bench.value("SELECT count(*) FROM tenantqueue_job_hot WHERE state = 'created'")
    expected = 10 + BLOCKS * each + (batches + 1) * BATCH
    if stored != expected:
        raise Incorrect(f"{expected} jobs were submitted, {stored} are stored")
    done = BLOCKS * each
    return (
        Sample(done / seconds[full], done),
        Sample(done / seconds[bare], done),
        Sample(batches * BATCH / spent, batches * BATCH),
    )


def _time(call: Callable[[], None], times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - began
