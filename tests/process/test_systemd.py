"""A worker as a service of systemd, `Type=notify` with a watchdog, and the unit of the page."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest

from django_tenantqueue.operations.worker_control import drain
from django_tenantqueue.worker.supervisor.systemd import SystemdNotifier

from .tasks import hold, read_environment
from .workers import Gate, Workers, wait_for_end, wait_until

PAGE = Path(__file__).parents[2] / "docs/howto/deployment.md"
KNOWN = {
    "Unit": {"Description", "After", "Wants"},
    "Service": {
        *("Type", "User", "WorkingDirectory", "Environment", "ExecStart"),
        *("TimeoutStartSec", "TimeoutStopSec", "WatchdogSec", "Restart", "RestartSec"),
    },
    "Install": {"WantedBy"},
}


class ServiceManager:
    """The end of the socket that systemd has."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1))
        self.lines: list[str] = []

    def environment(self, watchdog_seconds: float | None = None) -> dict[str, str]:
        made = {"NOTIFY_SOCKET": self.address}
        if watchdog_seconds is not None:
            made["WATCHDOG_USEC"] = str(int(watchdog_seconds * 1_000_000))
        return made

    def receive(self) -> list[str]:
        """Add what has come; return all of it."""
        while True:
            try:
                self.lines += self._socket.recv(4096, socket.MSG_DONTWAIT).decode().split("\n")
            except BlockingIOError:
                return self.lines

    def wait_for(self, line: str, times: int = 1) -> None:
        wait_until(lambda: self.receive().count(line) >= times, what=f"{line} {times} times")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = f"{tmp_path}/notify"
    return path if request.param == "path" else f"@{path}"


@pytest.fixture
def manager(address: str) -> Iterator[ServiceManager]:
    made = ServiceManager(address)
    yield made
    made.close()


def test_worker_tells_systemd_that_it_is_ready_lives_and_stops(
    workers: Workers, manager: ServiceManager, gate: Gate
) -> None:
    runner = workers.launch("--processes=2", variables=manager.environment(watchdog_seconds=1.0))
    manager.wait_for("READY=1")
    assert [row.heartbeat_at is not None for row in runner.rows()] == [True, True]
    manager.wait_for("WATCHDOG=1", times=3)
    job = hold.delay(str(gate))
    gate.wait_for(job)
    runner.send(signal.SIGTERM)
    manager.wait_for("STOPPING=1")
    gate.open()
    assert runner.end() == 0
    wait_for_end([job.pk])

    lines = [line for line in manager.receive() if line != "WATCHDOG=1"]
    ready = lines.index("READY=1")
    assert all(line.startswith("STATUS=not ready: ") for line in lines[:ready])
    assert lines[ready:] == [
        *("READY=1", "STATUS=ready"),
        *("STOPPING=1", "STATUS=not ready: it is stopping"),
    ]


def test_drain_by_an_operator_stops_the_service_only_when_it_has_ended(
    workers: Workers, tmp_path: Path, gate: Gate
) -> None:
    """systemd would kill it after TimeoutStopSec."""
    manager = ServiceManager(f"{tmp_path}/notify")
    runner = workers.launch(variables=manager.environment())
    manager.wait_for("READY=1")
    job = hold.delay(str(gate))
    gate.wait_for(job)

    drain([row.pk for row in runner.rows()])

    manager.wait_for("STATUS=not ready: 0 of 1 process runs")
    assert "STOPPING=1" not in manager.receive()
    gate.open()
    assert runner.end() == 0
    assert manager.receive()[-2] == "STOPPING=1"
    manager.close()


def test_watchdog_is_silent_while_the_supervisor_does_not_run(
    workers: Workers, tmp_path: Path
) -> None:
    manager = ServiceManager(f"{tmp_path}/notify")
    runner = workers.launch(variables=manager.environment(watchdog_seconds=0.4))
    manager.wait_for("READY=1")
    manager.wait_for("WATCHDOG=1", times=2)

    runner.send(signal.SIGSTOP)
    wait_for_stop(runner.process.pid)
    before = len(manager.receive())
    job = read_environment.delay()
    wait_for_end([job.pk])  # its children live on

    with pytest.raises(AssertionError):
        wait_until(lambda: len(manager.receive()) > before, timeout=1.5)
    runner.send(signal.SIGCONT)
    wait_until(lambda: len(manager.receive()) > before, what="the supervisor goes on")
    manager.close()


def wait_for_stop(pid: int) -> None:
    stat = Path(f"/proc/{pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")


def test_jobs_and_their_programs_do_not_have_the_socket(workers: Workers, tmp_path: Path) -> None:
    manager = ServiceManager(f"{tmp_path}/notify")
    workers.launch(variables=manager.environment(watchdog_seconds=60.0))
    job = read_environment.delay()
    wait_for_end([job.pk])

    own, of_a_program = job.refresh().result
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & {*own, *of_a_program}
    assert {"DATABASE_URL", "PATH"} <= {*own} & {*of_a_program}
    manager.close()


def test_worker_works_when_nothing_listens_at_the_socket(workers: Workers, tmp_path: Path) -> None:
    variables = {"NOTIFY_SOCKET": f"{tmp_path}/nothing", "WATCHDOG_USEC": "100000"}
    runner = workers.launch(variables=variables)
    job = read_environment.delay()
    wait_for_end([job.pk])
    runner.send(signal.SIGTERM)

    assert runner.end() == 0
    assert runner.output.count("notifying systemd failed: ") == 1


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_nothing_is_sent_when_systemd_has_not_started_the_worker(environment) -> None:
    environment.setenv("WATCHDOG_USEC", "1000")
    notifier = SystemdNotifier()
    environment.setattr(socket, "socket", None)

    notifier.tell(None, is_stopping=False)

    assert notifier.seconds_to_next == float("inf")


@pytest.mark.parametrize(
    ("variables", "is_watched"),
    [
        ({"WATCHDOG_USEC": "2000000"}, True),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid())}, True),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"}, False),
        ({"WATCHDOG_USEC": "soon"}, False),
        ({}, False),
    ],
)
def test_watchdog_of_this_process_is_obeyed(environment, tmp_path, variables, is_watched) -> None:
    environment.setenv("NOTIFY_SOCKET", f"{tmp_path}/nothing")
    for name, value in variables.items():
        environment.setenv(name, value)

    assert (SystemdNotifier().seconds_to_next <= 1.0) == is_watched
    assert not {*variables, "NOTIFY_SOCKET"} & os.environ.keys()


def test_news_are_sent_again_when_they_could_not_be_sent(environment, tmp_path) -> None:
    environment.setenv("NOTIFY_SOCKET", f"{tmp_path}/notify")
    notifier = SystemdNotifier()
    notifier.tell(None, is_stopping=False)
    manager = ServiceManager(f"{tmp_path}/notify")

    for _ in range(2):
        notifier.tell(None, is_stopping=False)

    assert manager.receive() == ["READY=1", "STATUS=ready"]
    manager.close()


def unit() -> str:
    (text,) = re.findall(r"^```ini\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    return str(text)


def test_unit_of_the_page_has_known_keys_and_stops_later_than_the_worker() -> None:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit())

    assert {name: set(parser[name]) for name in parser.sections()} == {
        name: keys & set(parser[name]) for name, keys in KNOWN.items()
    }
    service = parser["Service"]
    (timeout,) = re.findall(r"--shutdown-timeout (\d+)", service["ExecStart"])
    assert int(service["TimeoutStopSec"]) >= int(timeout) + 10
    assert service["Type"] == "notify"
    assert int(service["WatchdogSec"]) >= 60


def test_unit_of_the_page_is_accepted_by_systemd(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    text = unit().replace("/srv/app/.venv/bin/python", sys.executable)
    text = text.replace("/srv/app", str(tmp_path)).replace("User=app", "User=nobody")
    path = tmp_path / "worker.service"
    path.write_text(text)

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path],
        capture_output=True,
        text=True,
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")
