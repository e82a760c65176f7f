"""`runworker --health-port`: what a worker answers to probes over HTTP."""

from __future__ import annotations

import signal
import socket
from http import HTTPStatus
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil

from django_tenantqueue.worker.supervisor.health_port import HealthPort

from .tasks import hold
from .workers import Gate, Workers, wait_until

NOT_READY = HTTPStatus.SERVICE_UNAVAILABLE


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=15) as response:
            return response.status, response.read().decode().strip()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode().strip()


def test_worker_is_ready_once_it_has_started_and_until_it_stops(workers: Workers, gate: Gate):
    port = free_port()
    runner = workers.start(f"--health-port={port}", processes=2)
    wait_until(lambda: ask(port, "/ready") == (200, "ok"), what="the worker is ready")
    assert ask(port, "/live?verbose") == (200, "ok")
    assert ask(port, "/elsewhere") == (404, "see /live and /ready")
    listening = [
        child
        for child in runner.children()
        if any(c.status == psutil.CONN_LISTEN for c in child.net_connections("tcp"))
    ]
    assert listening == []
    job = hold.delay(str(gate))
    gate.wait_for(job)

    runner.send(signal.SIGTERM)

    wait_until(lambda: ask(port, "/ready") == (503, "not ready: it is stopping"))
    assert ask(port, "/live") == (200, "ok")
    gate.open()
    assert runner.end() == 0


def test_silent_clients_keep_no_probe_waiting_for_long() -> None:
    port = free_port()
    health = HealthPort(port)
    health.start()
    health.tell(None)
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]

    assert ask(port, "/ready") == (200, "ok")

    for client in silent:
        client.close()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"POST /live HTTP/1.1\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
    with (
        socket.create_connection(("::1", port))
        if socket.has_dualstack_ipv6()
        else (socket.create_connection(("127.0.0.1", port))) as client
    ):
        client.sendall(b"HEAD /live HTTP/1.1\r\n\r\n")
        assert client.recv(1000).endswith(b"\r\n\r\n")
    health.close()


def test_worker_says_so_when_its_port_is_in_use(workers: Workers) -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]

        runner = workers.run(f"--health-port={port}")

    assert runner.process.returncode == 2
    assert f"--health-port={port} cannot be opened" in runner.output


def test_supervisor_without_progress_is_not_alive() -> None:
    health = HealthPort(free_port())
    health._server.server_close()
    assert health.answer("/live") == (200, "ok")
    assert health.answer("/ready") == (NOT_READY, "not ready: it is starting")
    health.tell(None)
    assert health.answer("/ready") == (200, "ok")

    health._at -= 31.0

    for path in ("/live", "/ready"):
        status, line = health.answer(path)
        assert status == NOT_READY
        assert line.startswith("no progress for ")
    health.keep_alive()
    assert health.answer("/ready") == (200, "ok")
