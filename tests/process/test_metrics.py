"""`runworker --metrics-port` with real processes."""

from __future__ import annotations

import os
import signal
import socket
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.operations import maintain
from django_tenantqueue.states import State
from tests.testapp.tasks import noop

from .tasks import hold
from .workers import Gate, Workers, wait_for_end, wait_for_state, wait_until

pytest.importorskip("prometheus_client")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def scrape(port: int, path: str = "metrics", **headers: str) -> dict[str, float]:
    """Return the values by name with labels."""
    request = Request(f"http://127.0.0.1:{port}/{path}", headers=headers)
    with urlopen(request, timeout=15) as response:
        lines = response.read().decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }


def started(port: int) -> float:
    return sum(
        value
        for name, value in scrape(port).items()
        if name.startswith("tenantqueue_jobs_started_total")
    )


def test_metrics_are_answered_when_a_worker_has_a_port(workers: Workers, gate: Gate):
    port = free_port()
    runner = workers.start("--processes=2", "--threads=4", f"--metrics-port={port}", processes=2)
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


def test_counters_go_on_when_a_child_is_killed(workers: Workers, gate: Gate):
    maintain.thin_figures("default")
    port = free_port()
    runner = workers.start("--processes=1", f"--metrics-port={port}")
    runner.wait_until_signed_on(1)
    wait_for_end(noop.enqueue_many([()] * 20))
    wait_until(lambda: started(port) == 20.0)
    held = hold.delay(str(gate))
    wait_for_state(held, State.RUNNING)
    (child,) = runner.children()

    os.kill(child.pid, signal.SIGKILL)

    wait_until(lambda: child.pid not in psutil.pids())
    assert started(port) >= 20.0
    gate.open()
    runner.wait_until_signed_on(1)
    wait_for_end([held.pk, *noop.enqueue_many([()] * 20)])
    before = 20.0
    while before < 41.0:
        now = started(port)
        assert before <= now <= 42.0  # the killed run may be counted, and its successor is
        before = now
    assert Job.objects.filter(state=State.SUCCESS).count() == 41


def test_worker_says_so_when_its_port_is_in_use(workers: Workers):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]

        runner = workers.run(f"--metrics-port={port}")

    assert runner.process.returncode == 2
    assert f"--metrics-port={port} cannot be opened" in runner.output


def test_worker_works_on_when_a_scrape_hangs(workers: Workers):
    port = free_port()
    runner = workers.start("--processes=1", f"--metrics-port={port}")
    runner.wait_until_signed_on(1)
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n")
        (child,) = runner.children()
        os.kill(child.pid, signal.SIGKILL)

        wait_until(lambda: child.pid not in psutil.pids())
        runner.wait_until_signed_on(1)
        assert "tenantqueue_jobs_started_total" not in scrape(port)
