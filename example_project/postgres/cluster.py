"""One PostgreSQL cluster in one directory: made on first use, started, stopped, removed.

Below the directory, for each major version of PostgreSQL::

    pg18/data         the cluster, and pg18/server.log; only the server's account may enter
    pg18.json         its password and port; only the one who made it may read
    lock              held while a server is made, started or stopped
"""

import fcntl
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg

from .account import reachable_binaries, reachable_directory, server_account
from .binaries import find_binaries
from .errors import PostgresError

HOST = "127.0.0.1"
ROLE = DATABASE = "tenantqueue"
START_SECONDS = 60
DEFAULT_SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "synchronous_commit": "on",
    "max_connections": "300",
    "shared_buffers": "256MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class Cluster:
    """The cluster kept in data_dir, or in a system directory if the server cannot reach it."""

    def __init__(self, data_dir: Path | str) -> None:
        self.requested_dir = Path(data_dir).resolve()
        self.account = server_account()
        self.binaries = reachable_binaries(self.account, find_binaries())
        try:
            self.directory = reachable_directory(self.account, self.requested_dir)
        except OSError as error:
            raise PostgresError(
                f"Cannot keep a database in {self.requested_dir}: {error}"
            ) from error
        self.home = self.directory / f"pg{self.binaries.major}"
        self.data = self.home / "data"
        self.log = self.home / "server.log"
        self.state_file = self.directory / f"pg{self.binaries.major}.json"

    @property
    def url(self) -> str:
        """The URL of the server; raises PostgresError if it has never been started."""
        state = self._read_state()
        return f"postgres://{ROLE}:{state['password']}@{HOST}:{state['port']}/{DATABASE}"

    @property
    def pid(self) -> int | None:
        """The process id of the running server, else None."""
        pid = self._recorded_pid()
        return pid if pid is not None and self._is_ours(pid) else None

    def start(self, *, port: int | None = None, settings: Mapping[str, str] | None = None) -> str:
        """Start the server, unless it is running, and return its URL."""
        with self._locked():
            if not self._answers():
                if not self.data.exists():
                    self._create()
                self._forget_stale_pid()
                self._launch(port, {**DEFAULT_SETTINGS, **(settings or {})})
            return self.url

    def stop(self) -> bool:
        """Stop the server, ending its connections; False if it was not running."""
        with self._locked():
            if self.pid is None:
                return False
            for mode in ("fast", "immediate"):
                done = self._pg_ctl("stop", "-m", mode, "-w", "-t", "30")
                if done.returncode == 0 or self.pid is None:
                    return True
            raise PostgresError(f"Stopping the server in {self.data} failed: {done.stdout.strip()}")

    def crash(self) -> None:
        """End the server at once, without a checkpoint; its port refuses connections then."""
        with self._locked():
            self._pg_ctl("stop", "-m", "immediate", "-w", "-t", "30")

    def destroy(self) -> None:
        """Stop the server and remove its directory with all data."""
        self.stop()
        for directory in {self.directory, self.requested_dir}:
            shutil.rmtree(directory, ignore_errors=True)

    def _answers(self) -> bool:
        """Whether the server runs; one that is about to end is waited for."""
        deadline = time.monotonic() + START_SECONDS
        while self.pid is not None:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise PostgresError(
                        f"The server in {self.data} runs but does not answer: {error}"
                    ) from error
                time.sleep(0.05)
            else:
                return True
        return False

    def _create(self) -> None:
        password = secrets.token_hex(16)
        self.account.own(self.home)
        # Renamed into place when complete: a cluster that was cut short is never used.
        partial = self.home / "data.partial"
        shutil.rmtree(partial, ignore_errors=True)
        # PostgreSQL 17 and later bring a locale of their own; before, it is the system's.
        locale = (
            ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
            if self.binaries.major >= 17
            else ["--locale=C.UTF-8"]
        )
        password_file = self.home / "password"
        self.account.own_file(password_file, f"{password}\n")
        self._run(
            "initdb",
            f"--pgdata={partial}",
            f"--username={ROLE}",
            "--auth=scram-sha-256",
            f"--pwfile={password_file}",
            "--encoding=UTF8",
            *locale,
            "--no-sync",
        )
        password_file.unlink()
        self._run(
            *("postgres", "--single", "-D", str(partial), "template1"),
            stdin=f"CREATE DATABASE {DATABASE};\n",
        )
        with (partial / "postgresql.conf").open("a") as conf:
            conf.write("\ninclude 'embedded.conf'\n")
        self._write_state(password, None)
        partial.rename(self.data)

    def _launch(self, port: int | None, settings: Mapping[str, str]) -> None:
        state = self._read_state()
        deadline = time.monotonic() + START_SECONDS
        wanted = port or state["port"]
        while True:
            chosen = wanted if isinstance(wanted, int) and _is_free(wanted) else _free_port()
            if port is not None and chosen != port:
                raise PostgresError(f"Port {port} on {HOST} is in use.")
            self._configure(chosen, settings)
            offset = self.log.stat().st_size if self.log.exists() else 0
            done = self._pg_ctl("start", "-w", "-t", str(START_SECONDS), "-l", str(self.log))
            if done.returncode == 0:
                self._write_state(str(state["password"]), chosen)
                return
            said = self._log_since(offset) or done.stdout.strip()
            # After SIGKILL the server's children outlive it for a moment.
            passing = "is still in use" in said or "could not create any TCP/IP sockets" in said
            if not passing or time.monotonic() > deadline:
                raise PostgresError(f"Starting PostgreSQL failed. Log, {self.log}:\n{said}")
            time.sleep(0.2)

    def _configure(self, port: int, settings: Mapping[str, str]) -> None:
        # No Unix socket: its path may be no longer than about 100 bytes, a checkout's may.
        fixed = {"listen_addresses": HOST, "port": str(port), "unix_socket_directories": ""}
        lines = [
            "{} = '{}'\n".format(name, value.replace("'", "''"))
            for name, value in {**settings, **fixed}.items()
        ]
        path = self.data / "embedded.conf"
        path.write_text("".join(lines))
        path.chmod(0o644)

    def _recorded_pid(self) -> int | None:
        try:
            return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None
        except PermissionError as error:
            raise PostgresError(
                f"{self.directory} belongs to another account; remove it, or run as that account."
            ) from error

    def _is_ours(self, pid: int) -> bool:
        try:
            process = psutil.Process(pid)
            return process.status() != psutil.STATUS_ZOMBIE and str(self.data) in process.cmdline()
        except psutil.Error:
            return False

    def _forget_stale_pid(self) -> None:
        # PostgreSQL refuses to start if the recorded id has gone to another process since.
        pid = self._recorded_pid()
        if pid is not None and psutil.pid_exists(pid):
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _pg_ctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = self.binaries.program("pg_ctl")
        return self.account.run([program, "-D", str(self.data), *arguments])

    def _run(self, program: str, *arguments: str, stdin: str = "") -> None:
        done = self.account.run([self.binaries.program(program), *arguments], stdin=stdin)
        if done.returncode != 0:
            raise PostgresError(f"{program} failed in {self.home}:\n{done.stdout.strip()}")

    def _log_since(self, offset: int) -> str:
        if not self.log.exists():
            return ""
        with self.log.open(errors="replace") as log:
            log.seek(offset)
            return log.read().strip()

    def _read_state(self) -> dict[str, str | int | None]:
        try:
            state: dict[str, str | int | None] = json.loads(self.state_file.read_text())
        except FileNotFoundError:
            raise PostgresError(
                f"There is no server in {self.directory}. Start it first."
            ) from None
        except PermissionError as error:
            raise PostgresError(
                f"{self.state_file} belongs to another account; "
                f"remove {self.directory}, or run as that account."
            ) from error
        return state

    def _write_state(self, password: str, port: int | None) -> None:
        partial = self.state_file.with_suffix(".partial")
        partial.touch(mode=0o600)
        partial.write_text(json.dumps({"password": password, "port": port}))
        partial.replace(self.state_file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise PostgresError(f"Cannot use {self.directory}: {error}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
