"""The HTTP API under gunicorn: one job in a request against the same view without INSERT, and
against the same view with a plain INSERT of the same row; batches.

Connections are kept alive, those to the database, too. gunicorn has one process.
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from django_tenantqueue.operations.tokens import create_token

from ..bench import Bench
from ..measure import ratios
from ..processes import Processes, environment
from ..results import Incorrect, Row, Sample, at_least

BLOCKS = 10
BATCH = 1000
CLIENTS = 4
"""Connections at once, and threads of the server."""
OF_BARE = 0.6
START_SECONDS = 60.0
TASK = "benchmarks.bench_app.tasks.noop_async"


class Site(Processes):
    """A gunicorn of one process, and its clients."""

    what = "gunicorn"

    def __init__(self, bench: Bench, url: str, name: str, **env: str) -> None:
        super().__init__()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        options = ("-k", "gthread", "--threads", str(CLIENTS), "--keep-alive", "60")
        bind = ("-b", f"127.0.0.1:{self.port}")
        self.start(
            [sys.executable, "-m", "gunicorn", *options, *bind, "benchmarks.api_site:application"],
            environment(url, **env),
            bench.directory / f"{name}.log",
        )
        self.clients = [
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=30) for _ in range(CLIENTS)
        ]

    def wait(self, secret: str) -> None:
        """Wait until it answers."""
        self.headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with suppress(OSError, http.client.HTTPException):
                self.clients[0].request("GET", "/api/tasks", headers=self.headers)
                self.clients[0].getresponse().read()
                return
            self.clients[0].close()
            time.sleep(0.1)
        raise Incorrect("gunicorn does not answer")

    def post(self, path: str, body: bytes, times: int, clients: int = 1) -> float:
        """Send requests from each of some clients; return the seconds that it took."""
        began = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            sent = [
                pool.submit(self._post, client, path, body, times)
                for client in self.clients[:clients]
            ]
            for one in sent:
                one.result()
        return time.perf_counter() - began

    def _post(self, client: http.client.HTTPConnection, path: str, body: bytes, times: int) -> None:
        for _ in range(times):
            client.request("POST", path, body=body, headers=self.headers)
            answer = client.getresponse()
            told = answer.read()
            if answer.status != 201:
                raise Incorrect(f"{path} answered {answer.status}: {told[:300]!r}")


def run(bench: Bench) -> Iterator[Row]:
    """Measure single jobs, of one client and of several, then batches."""
    bench.use("main")
    for clients in (1, CLIENTS):
        what = "1 connection" if clients == 1 else f"{clients} connections"
        samples = bench.rounds(lambda clients=clients: _singles(bench, clients))
        full, bare, plain = ([sample[n] for sample in samples] for n in range(3))
        yield Row("api", f"one job a request, {what}", "requests/s", full)
        yield Row("api", f"the same view without INSERT, {what}", "requests/s", bare)
        yield Row("api", f"the same view with a plain INSERT, {what}", "requests/s", plain)
        for than, others, bound in (
            ("without INSERT", bare, OF_BARE if clients > 1 else None),  # one waits for each commit
            ("with a plain INSERT", plain, None),
        ):
            shares = ratios([one.value for one in full], [one.value for one in others])
            yield Row(
                "api",
                f"one job a request / {than}, {what}",
                "×",
                [Sample(share) for share in shares],
                target=None if bound is None else at_least(bound),
                digits=2,
            )
    batches = bench.rounds(lambda: _batches(bench))
    yield Row("api", f"batches of {BATCH:,}", "jobs/s", batches, target=at_least(20_000))


def _secret(bench: Bench) -> str:
    bench.reset()
    bench.make_queues(["wide"])
    return create_token(f"benchmark {time.time_ns()}", tenant="wide")[1]


def _singles(bench: Bench, clients: int) -> tuple[Sample, Sample, Sample]:
    """Alternate between the sites in blocks, so that all meet the same machine."""
    secret, body = _secret(bench), json.dumps({"task": TASK}).encode()
    each = bench.size(100, 30)
    with (
        Site(bench, bench.url, "api") as full,
        Site(bench, bench.url, "api-bare", BENCHMARK_INSERT="none") as bare,
        Site(bench, bench.url, "api-plain", BENCHMARK_INSERT="plain") as plain,
    ):
        sites = (full, bare, plain)
        seconds = dict.fromkeys(sites, 0.0)
        for site in sites:
            site.wait(secret)
            site.post("/api/jobs", body, 10, clients)
        for block in range(BLOCKS):
            for site in sites if block % 2 else reversed(sites):
                seconds[site] += site.post("/api/jobs", body, each, clients)
    _check(bench, 2 * clients * (10 + BLOCKS * each) + 2)  # two sites store a row to copy
    done = clients * BLOCKS * each
    made = [Sample(done / seconds[site], done) for site in sites]
    return made[0], made[1], made[2]


def _batches(bench: Bench) -> Sample:
    secret, body = _secret(bench), json.dumps({"jobs": [{"task": TASK}] * BATCH}).encode()
    batches = bench.size(30, 8)
    with Site(bench, bench.url, "api") as site:
        site.wait(secret)
        site.post("/api/jobs/batch", body, 1)
        seconds = site.post("/api/jobs/batch", body, batches)
    _check(bench, (batches + 1) * BATCH)
    return Sample(batches * BATCH / seconds, batches * BATCH)


def _check(bench: Bench, jobs: int) -> None:
    stored = bench.value("SELECT count(*) FROM tenantqueue_job_hot WHERE state = 'created'")
    if stored != jobs:
        raise Incorrect(f"{jobs} jobs were submitted, {stored} are stored")
