"""Brokers of the tests' own, in a directory of theirs, on free ports."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

REDIS = ("redis-server",)
RABBITMQ = ("rabbitmq-server", "rabbitmqctl", "epmd")
RABBITMQ_BIN = "/usr/lib/rabbitmq/bin"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _find(program: str) -> str | None:
    own = Path(RABBITMQ_BIN) / program
    if os.access(own, os.X_OK):
        return str(own)  # what is in PATH changes to another account
    return shutil.which(program)


def need(programs: tuple[str, ...]) -> None:
    """Skip the test when a program is missing; fail it in CI."""
    missing = [program for program in programs if _find(program) is None]
    if missing:
        package = "rabbitmq-server" if programs is RABBITMQ else "redis-server"
        text = f"no {', '.join(missing)}: apt-get install {package}"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _wait(condition, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


class Broker:
    """A server that is started, stopped, killed and emptied."""

    url: str
    patience = 60.0

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.log = directory / "broker.log"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> tuple[list[str], dict[str, str]]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        return _answers(self.port)

    def start(self) -> None:
        """Start it and wait until it answers."""
        command, env = self.command()
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **env},
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _wait(self.is_ready, self.patience, f"{command[0]} answers")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def flush(self) -> None:
        raise NotImplementedError

    def destroy(self) -> None:
        self.stop(signal.SIGKILL)


class Redis(Broker):
    """A Redis server without persistence: its messages are lost when it ends."""

    def __init__(self, directory: Path) -> None:
        need(REDIS)
        super().__init__(directory)
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> tuple[list[str], dict[str, str]]:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        return ["redis-server", *options, "--dir", str(self.directory)], {}

    def flush(self) -> None:
        import redis

        with redis.Redis(port=self.port) as client:
            client.flushall()


class RabbitMQ(Broker):
    """A RabbitMQ node with a cookie, an epmd and a database of its own."""

    def __init__(self, directory: Path) -> None:
        need(RABBITMQ)
        super().__init__(directory)
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self.epmd_port = free_port()
        self.epmd: subprocess.Popen[bytes] | None = None

    @property
    def env(self) -> dict[str, str]:
        """The environment of the node and of the programs that talk to it."""
        return {
            "HOME": str(self.directory),
            "RABBITMQ_NODENAME": f"tests{self.port}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_MNESIA_BASE": str(self.directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.directory / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.directory / "rabbitmq"),
            "RABBITMQ_PID_FILE": str(self.directory / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def command(self) -> tuple[list[str], dict[str, str]]:
        self.dist_port = free_port()
        (self.directory / "enabled_plugins").write_text("[].\n")
        # queues of messages that nobody has taken do not fill this machine's disk
        (self.directory / "rabbitmq.conf").write_text("disk_free_limit.absolute = 1MB\n")
        if self.epmd is None:
            program = _find("epmd")
            assert program is not None, "looked for by need()"
            self.epmd = subprocess.Popen(
                [program, "-port", str(self.epmd_port), "-address", "127.0.0.1"],
                env={**os.environ, "HOME": str(self.directory)},
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            _wait(lambda: _answers(self.epmd_port), 20, "epmd answers")
        program = _find("rabbitmq-server")
        assert program is not None, "looked for by need()"
        return [program], self.env

    def is_ready(self) -> bool:
        if not _answers(self.port):
            return False
        import kombu

        with suppress(Exception), kombu.Connection(self.url, connect_timeout=2) as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
            return True
        return False

    def flush(self) -> None:
        import kombu

        with kombu.Connection(self.url) as connection, connection.channel() as channel:
            channel.queue_purge("tenantqueue")

    def destroy(self) -> None:
        """See Broker; and end its epmd."""
        super().destroy()
        if self.epmd is not None:
            self.epmd.kill()
            self.epmd.wait()
            self.epmd = None
