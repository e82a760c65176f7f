"""A database of its own for the example project, and its demo as a process."""

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
from psycopg import sql

ROOT = Path(__file__).resolve().parents[2]
FLIGHTS = 3000


def environment(url: str | None) -> dict[str, str]:
    """Return this process's environment with DATABASE_URL set, or without it."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE", "DEMO_ADMIN_PASSWORD")
    }
    return clean if url is None else {**clean, "DATABASE_URL": url}


def run_demo(url: str | None, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "example_project.demo", *options],
        cwd=ROOT,
        env=environment(url),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def manage(url: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a management command of the example project."""
    return subprocess.run(
        [sys.executable, str(ROOT / "example_project" / "manage.py"), *command],
        env=environment(url),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class Demo:
    """A demo that runs until it is stopped."""

    def __init__(self, url: str | None, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "example_project.demo", "--port=0", *options],
            cwd=ROOT,
            env=environment(url),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # a shell starts what runs in its background with this signal ignored
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        assert self.process.stdout is not None
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if "Stop with CTRL-C" in line:
                break
        assert "Stop with CTRL-C" in self.said, self.said
        self.site = self._found(r"http://\S+:\d+/")
        self.password = self._found(r"password (\S+)")
        self.logs = Path(self._found(r"logs are in (\S+)\."))
        self.children = psutil.Process(self.process.pid).children(recursive=True)

    def _found(self, pattern: str) -> str:
        match = re.search(pattern, self.said)
        assert match is not None, self.said
        return match[match.lastindex or 0]

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; return the exit code."""
        self.process.send_signal(number)
        self.said += self.process.communicate(timeout=60)[0]
        return self.process.returncode

    def left(self, timeout: float = 30.0) -> list[psutil.Process]:
        """Return those of its processes that are still there after `timeout` seconds."""
        return psutil.wait_procs(self.children, timeout=timeout)[1]


@pytest.fixture(scope="session")
def make_database(server_url: str) -> Iterator[Callable[[], str]]:
    made: list[str] = []

    def make() -> str:
        name = f"example_{secrets.token_hex(4)}"
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        made.append(name)
        return urlsplit(server_url)._replace(path=f"/{name}").geturl()

    yield make
    with psycopg.connect(server_url, autocommit=True) as connection:
        for name in made:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


@pytest.fixture(scope="session")
def once(make_database: Callable[[], str]) -> tuple[str, subprocess.CompletedProcess[str]]:
    """Run a small batch in a new database; return its URL and what the demo said."""
    url = make_database()
    return url, run_demo(url, "--once", "--jobs=60", f"--flights={FLIGHTS}", "--processes=2")
