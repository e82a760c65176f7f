"""The HTTP API under gunicorn and uvicorn: one job in a request against the same view without
INSERT, and against the same view with a plain INSERT of the same row; batches.

Connections are kept alive, those to the database, too. Each server has one process.
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from typing import Any

from django_tenantqueue.contrib.api.control import make_token

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


OPTIONS = {
    "gunicorn": ["-k", "gthread", "--threads", str(CLIENTS), "--keep-alive", "60", "-b", "{}:{}"],
    "uvicorn": ["--no-access-log", "--timeout-keep-alive", "60", "--host", "{}", "--port", "{}"],
}
"""The servers, WSGI and ASGI."""


class Site(Processes):
    """A server of one process, and its clients."""

    def __init__(self, bench: Bench, server: str, insert: str = "") -> None:
        super().__init__()
        self.what = server
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        options = " ".join(OPTIONS[server]).format("127.0.0.1", self.port).split()
        self.start(
            [sys.executable, "-m", server, *options, "benchmarks.api_site:application"],
            environment(bench.url, BENCHMARK_SERVER=server, BENCHMARK_INSERT=insert),
            bench.directory / f"api-{server}-{insert}.log",
        )
        self.clients = [
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=30) for _ in range(CLIENTS)
        ]

    def tell_to_stop(self, command: subprocess.Popen[Any]) -> None:
        """See Processes.tell_to_stop. After SIGTERM, uvicorn ends with an error code."""
        command.send_signal(signal.SIGINT)

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
        raise Incorrect(f"{self.what} does not answer")

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
    for server, clients in product(OPTIONS, (1, CLIENTS)):
        where = f"{server}, {clients} connection" + "s" * (clients > 1)
        samples = bench.rounds(
            lambda server=server, clients=clients: _singles(bench, server, clients)
        )
        full, bare, plain = ([sample[n] for sample in samples] for n in range(3))
        yield Row("api", f"one job a request, {where}", "requests/s", full)
        yield Row("api", f"the same view without INSERT, {where}", "requests/s", bare)
        yield Row("api", f"the same view with a plain INSERT, {where}", "requests/s", plain)
        for than, others, bound in (
            ("without INSERT", bare, at_least(OF_BARE)),
            ("with a plain INSERT", plain, None),
        ):
            shares = ratios([one.value for one in full], [one.value for one in others])
            yield Row(
                "api",
                f"one job a request / {than}, {where}",
                "×",
                [Sample(share) for share in shares],
                target=bound,
                digits=2,
            )
    batches = bench.rounds(lambda: _batches(bench))
    yield Row("api", f"batches of {BATCH:,}", "jobs/s", batches, target=at_least(20_000))


def _secret(bench: Bench) -> str:
    bench.reset()
    bench.make_queues(["wide"])
    return make_token(f"benchmark {time.time_ns()}", tenant="wide")[1]


def _singles(bench: Bench, server: str, clients: int) -> tuple[Sample, Sample, Sample]:
    """Alternate between the sites in blocks, so that all meet the same machine."""
    secret, body = _secret(bench), json.dumps({"task": TASK}).encode()
    each = bench.size(100, 30)
    with (
        Site(bench, server) as full,
        Site(bench, server, "none") as bare,
        Site(bench, server, "plain") as plain,
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
    with Site(bench, "gunicorn") as site:
        site.wait(secret)
        site.post("/api/jobs/batch", body, 1)
        seconds = site.post("/api/jobs/batch", body, batches)
    _check(bench, (batches + 1) * BATCH)
    return Sample(batches * BATCH / seconds, batches * BATCH)


def _check(bench: Bench, jobs: int) -> None:
    stored = bench.value("SELECT count(*) FROM tenantqueue_job_hot WHERE state = 'ready'")
    if stored != jobs:
        raise Incorrect(f"{jobs} jobs were submitted, {stored} are stored")
