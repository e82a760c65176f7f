"""The project of docs/tutorial.md as it is after step 6, made from the blocks of the page."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parent.parent
FILES = ("mysite/settings.py", "reports/tasks.py", "reports/views.py", "mysite/urls.py")
"""The files of the first Python blocks of the page, in their order."""
DATABASE = """
DATABASES["default"] |= {{"USER": {user!r}, "PASSWORD": {password!r}}}
DATABASES["default"] |= {{"HOST": {host!r}, "PORT": {port}}}
"""
PASSWORD = "tutorial"
SECONDS = 60.0
"""Longest wait for the site, and for the first job."""


@contextmanager
def tutorial(place: Path) -> Iterator[tuple[str, str]]:
    """Follow the tutorial until its first job has ended; yield the site and admin's password."""
    sys.path.insert(0, str(ROOT))
    from example_project.postgres import temporary_cluster

    log_path = place / "log"
    with temporary_cluster() as url, log_path.open("wb") as log:
        project = place / "mysite"
        project.mkdir()
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            "PGPASSWORD": urlsplit(url).password or "",
        }
        environment.pop("DJANGO_SETTINGS_MODULE", None)

        def start(*command: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [sys.executable, *command],
                cwd=project,
                env=environment,
                stderr=log,
                start_new_session=True,
            )

        def run(*command: str) -> None:
            if start(*command).wait():
                raise SystemExit(f"error: {' '.join(command)} failed:\n{log_path.read_text()}")

        run("-m", "django", "startproject", "mysite", ".")
        run("manage.py", "startapp", "reports")
        _create_database(url)
        _write_files(project, url)
        run("manage.py", "migrate", "--verbosity=0")
        run(
            "manage.py", "createsuperuser", "--noinput", "--username=admin", "--email=a@example.com"
        )
        port = _free_port()
        site = f"http://127.0.0.1:{port}/"
        running = [
            start("manage.py", "runserver", "--noreload", str(port)),
            start("manage.py", "runworker", "--log-jobs", "--name=myhost-4711"),
        ]
        try:
            _wait_for(f"{site}admin/login/", "username")
            order = _read(f"{site}order/acme/100/")
            link = re.search(r"/jobs/[^\"]+", order)
            assert link is not None, order
            _wait_for(f"{site}{link[0].lstrip('/')}", '"state": "success"')
            yield site, PASSWORD
        finally:
            for process in running:
                process.send_signal(signal.SIGINT)
            for process in running:
                process.wait(timeout=90)


def _create_database(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE mysite")


def _write_files(project: Path, url: str) -> None:
    """Write the blocks of the page; the settings come behind those of startproject."""
    page = (ROOT / "docs" / "tutorial.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    for name, block in zip(FILES, blocks, strict=False):
        path = project / name
        before = path.read_text() if name == FILES[0] else ""
        path.write_text(before + block)
    parts = urlsplit(url)
    with (project / FILES[0]).open("a") as settings:
        settings.write(
            DATABASE.format(
                user=parts.username,
                password=parts.password,
                host=parts.hostname,
                port=parts.port,
            )
        )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _read(url: str) -> str:
    with urlopen(url) as answer:
        return str(answer.read().decode())


def _wait_for(url: str, text: str) -> None:
    last = ""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            last = _read(url)
        except (URLError, ConnectionError) as error:
            last = str(error)
        if text in last:
            return
        time.sleep(0.25)
    raise SystemExit(f"error: {url} does not show {text!r}:\n{last[-500:]}")
