"""`runworker --metrics-port` with real processes."""

from __future__ import annotations

import os
import signal
import socket
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest
from django.db.models import Count, Sum

from django_tenantqueue.contrib.prometheus.collector import registry
from django_tenantqueue.contrib.prometheus.serve import render
from django_tenantqueue.models import Job
from django_tenantqueue.operations import maintain
from django_tenantqueue.states import State
from tests.process.tasks import hold
from tests.process.workers import Gate, Workers, wait_for_end, wait_for_state, wait_until
from tests.testapp.tasks import noop

pytest.importorskip("prometheus_client")
OPEN = {"METRICS": {"ACCESS": "open"}}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def scrape(port: int, path: str = "metrics", **headers: str) -> dict[str, float]:
    request = Request(f"http://127.0.0.1:{port}/{path}", headers=headers)
    with urlopen(request, timeout=15) as response:
        return read(response.read())


def read(body: bytes) -> dict[str, float]:
    lines = body.decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }


def test_metrics_are_answered_when_a_worker_has_a_port(workers: Workers, gate: Gate):
    port = free_port()
    options = "--processes=2", "--threads=4", f"--metrics-port={port}"
    runner = workers.start(*options, processes=2, settings=OPEN)
    job = hold.delay(str(gate))
    wait_for_state(job, State.RUNNING)

    found = scrape(port)

    assert found["tenantqueue_worker_threads"] == 8.0
    assert found['tenantqueue_jobs{state="running"}'] == 1.0
    with pytest.raises(HTTPError) as error:
        scrape(port, "elsewhere")
    assert error.value.code == 404
    error.value.close()
    listening = [
        child
        for child in runner.children()
        if any(c.status == "LISTEN" for c in child.net_connections("tcp"))
    ]
    assert listening == []
    gate.open()
    wait_for_end([job.pk])
    runner.send(signal.SIGTERM)
    assert runner.end() == 0


class Counters:
    """The counters and histograms of scrapes. None of their series may go back, or away."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}

    def see(self, found: dict[str, float]) -> float:
        """Take what a scrape has found; return how many ends it counts."""
        kinds = ("_total", "_bucket", "_count", "_sum")
        now = {n: v for n, v in found.items() if n.split("{")[0].endswith(kinds)}
        for name, value in self._values.items():
            assert now[name] >= value, name
        self._values = now
        return self.sum("jobs_finished_total")

    def sum(self, name: str) -> float:
        series = [v for n, v in self._values.items() if n.startswith(f"tenantqueue_{name}{{")]
        return sum(series)


@pytest.mark.heavy
def test_counters_go_on_and_count_nothing_twice_when_children_are_killed(workers: Workers):
    maintain.thin_figures("default")
    port, counters = free_port(), Counters()
    runner = workers.start("--threads=4", f"--metrics-port={port}", processes=2, settings=OPEN)
    ids = noop.enqueue_many([()] * 20)
    wait_until(lambda: counters.see(scrape(port)) == 20)

    for _ in range(3):
        ids += noop.enqueue_many([()] * 150)
        wait_until(lambda: Job.objects.unfinished().count() < 140, what="jobs end")
        os.kill(runner.children()[0].pid, signal.SIGKILL)
        counters.see(scrape(port))
        runner.wait_until_signed_on(2)
        counters.see(scrape(port))
    wait_for_end([*ids, *noop.enqueue_many([()] * 20)])
    runner.send(signal.SIGTERM)  # the children add what they have counted
    assert runner.end() == 0

    jobs = Job.objects.aggregate(all=Count("pk"), claims=Sum("claim_seq"))
    # a killed child takes along what it has counted since its last heartbeat
    assert 40 <= counters.see(read(render(registry("default"), "")[0])) <= jobs["all"]
    assert counters.sum("run_seconds_count") <= jobs["all"]
    assert counters.sum("jobs_started_total") <= jobs["claims"]


def test_worker_says_so_when_its_port_is_in_use(workers: Workers):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]

        runner = workers.run(f"--metrics-port={port}", settings=OPEN)

    assert runner.process.returncode == 2
    assert f"--metrics-port={port} cannot be opened" in runner.output


def test_worker_works_on_when_a_scrape_hangs(workers: Workers):
    port = free_port()
    runner = workers.start("--processes=1", f"--metrics-port={port}", settings=OPEN)
    runner.wait_until_signed_on(1)
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n")
        (child,) = runner.children()
        os.kill(child.pid, signal.SIGKILL)

        wait_until(lambda: child.pid not in psutil.pids())
        runner.wait_until_signed_on(1)
        assert "tenantqueue_jobs_started_total" not in scrape(port)


def test_wrong_port_is_named_when_it_is_given(workers: Workers) -> None:
    runner = workers.run("--metrics-port=65536")

    assert runner.process.returncode == 2
    assert "is not a whole number from 1 to 65,535" in runner.output


def test_port_stays_closed_when_the_settings_open_it_to_nobody(workers: Workers) -> None:
    runner = workers.run(f"--metrics-port={free_port()}")

    assert runner.process.returncode == 2
    assert "set TENANTQUEUE['METRICS']['ACCESS'] to a token, or to 'open'" in runner.output
