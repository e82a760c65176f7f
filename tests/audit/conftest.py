"""The project's database, its workers, and the program that enqueues and counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest

from tests.process.workers import wait_until
from tests.zygote import ROOT, ForkedProcess, Zygote

from .project.play import FORGET

SETTINGS = "tests.audit.project.settings"
THREADS = 8


class Project:
    """A deployment of the project: one database, one worker at a time, one program to play."""

    def __init__(self, url: str, conn_max_age: int, folder: Path, zygote: Zygote) -> None:
        self.log = folder / f"worker-{conn_max_age}.log"
        self._folder = folder
        self._zygote = zygote
        self._env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "DATABASE_URL": url,
            "AUDIT_CONN_MAX_AGE": str(conn_max_age),
        }
        self._worker: ForkedProcess | None = None
        self._player = subprocess.Popen(
            [sys.executable, "-m", "tests.audit.project.play"],
            cwd=ROOT,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ask(FORGET)  # which takes the rows of workers, too: before there is one

    def child(self) -> int:
        """Return the process id of the worker's child; start a worker where there is none."""
        if self._worker is None:
            command = ["runworker", f"--threads={THREADS}"]
            self._worker = self._zygote.start("django", command, self._env, self.log)
        supervisor = psutil.Process(self._worker.pid)
        found: list[int] = []

        def is_alone() -> bool:
            found.clear()
            with suppress(psutil.NoSuchProcess):
                found.extend(c.pid for c in supervisor.children() if c.num_threads() > 1)
            return len(found) == 1

        wait_until(is_alone, what="one child has begun")
        return found[0]

    def play(self, name: str) -> dict[str, Any]:
        """Run a misbehaviour beside innocent jobs; return how all ended."""
        self.child()
        return self._ask(name)

    def _ask(self, name: str) -> dict[str, Any]:
        assert self._player.stdin is not None
        assert self._player.stdout is not None
        self._player.stdin.write(f"{name}\n")
        self._player.stdin.flush()
        answer: dict[str, Any] = json.loads(self._player.stdout.readline())
        return answer

    def begin_anew(self) -> None:
        """Kill the worker and forget all jobs, so that the next misbehaviour is judged alone."""
        self._kill_worker()
        self._ask(FORGET)

    def _kill_worker(self) -> None:
        if self._worker is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._worker.pid, signal.SIGKILL)
            self._worker.wait()
            self._worker = None

    def stop(self) -> int:
        """Stop the worker as a service manager does; return its exit code."""
        assert self._worker is not None
        self._worker.send_signal(signal.SIGTERM)
        code = self._worker.wait(20.0)
        self._worker = None
        return code

    def close(self) -> None:
        self._kill_worker()
        with self._player:  # its pipes are closed, and it ends
            pass


@pytest.fixture(scope="package")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture(scope="package")
def audit_url(server_url: str, zygote: Zygote, tmp_path_factory: Any) -> Iterator[str]:
    with database(server_url, f"audit_{os.getpid()}") as url:
        env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "DATABASE_URL": url,
            "AUDIT_CONN_MAX_AGE": "0",
        }
        log = tmp_path_factory.mktemp("audit") / "migrate.log"
        assert zygote.start("django", ["migrate"], env, log).wait(60.0) == 0, log.read_text()
        yield url


@contextmanager
def database(server_url: str, name: str) -> Iterator[str]:
    with psycopg.connect(server_url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="package")
def projects(
    audit_url: str, zygote: Zygote, tmp_path_factory: Any
) -> Iterator[Callable[[int], Project]]:
    """Yield a function that returns the project with connections that last for these seconds.

    Its worker plays one misbehaviour after another. There is one project at a time.
    """
    made: dict[int, Project] = {}

    def project_of(conn_max_age: int) -> Project:
        if conn_max_age not in made:
            while made:
                made.popitem()[1].close()
            folder = tmp_path_factory.mktemp("project")
            made[conn_max_age] = Project(audit_url, conn_max_age, folder, zygote)
        return made[conn_max_age]

    yield project_of
    while made:
        made.popitem()[1].close()
