"""A worker in a container: process 1, no root, a read-only file system, a small /dev/shm."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.testapp.tasks import work

from .tasks import leave_orphan, try_to_write
from .workers import ROOT, SETTINGS, wait_for_end, wait_for_state, wait_until

NOBODY = 65_534
MAKE_READ_ONLY = """
set -e
{shm}
awk '{{print $5}}' /proc/self/mountinfo | while read -r place; do
    case $place in
    /proc*) ;;
    *) if [ -e "$place" ]; then mount -o remount,bind,ro "$place"; fi ;;
    esac
done
exec setpriv --reuid {user} --regid {user} --clear-groups --inh-caps=-all,+dac_read_search \
    --ambient-caps=-all,+dac_read_search --bounding-set=-all,+dac_read_search "$@"
"""
"""The one capability lets any user read the interpreter, wherever it is installed."""
SHM = {
    "no /dev/shm": "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3"
    " && mknod -m 444 /dev/urandom c 1 9",
    "64 kB": "mount -t tmpfs -o size=64k shm /dev/shm",
}


class Container:
    """`runworker` as process 1; `process` is that process, seen from outside."""

    def __init__(self, shm: str, database_url: str, log: Path) -> None:
        self.log = log
        script = MAKE_READ_ONLY.format(shm=shm, user=NOBODY)
        env = {
            **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "DATABASE_URL": database_url,
            "TEST_TENANTQUEUE": json.dumps({}),
        }
        isolate = ["unshare", "--pid", "--fork", "--mount-proc", "--ipc"]
        worker = [sys.executable, "-W", "error", "-m", "django", "runworker", "--processes=2"]
        with log.open("wb") as output:
            self._outer = subprocess.Popen(
                [*isolate, "sh", "-c", script, "container", *worker, "--name=container"],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def process(self) -> psutil.Process:
        (first,) = psutil.Process(self._outer.pid).children()
        return first

    def wait_until_ready(self) -> None:
        wait_until(lambda: "worker container: " in self.output, what="the start")

    def end(self) -> int:
        return self._outer.wait(30.0)

    def destroy(self) -> None:
        if self._outer.poll() is None:
            for first in psutil.Process(self._outer.pid).children():
                first.kill()  # and with it all processes of its namespace
            self._outer.kill()
            self._outer.wait()
        sys.stdout.write(self.output)


@pytest.fixture
def start(
    transactional_db: None, database_url: str, tmp_path: Path
) -> Iterator[Callable[[str], Container]]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("root only: it makes namespaces")
    if not all(map(shutil.which, ("unshare", "setpriv", "mount"))):
        pytest.skip("root only: unshare, setpriv or mount is missing")
    if subprocess.run(["unshare", "--pid", "--mount", "--fork", "true"], check=False).returncode:
        pytest.skip("root only: this root may not make namespaces")
    made: list[Container] = []

    def start(shm: str) -> Container:
        made.append(Container(SHM[shm], database_url, tmp_path / "log"))
        made[-1].wait_until_ready()
        return made[-1]

    yield start
    for container in made:
        container.destroy()


@pytest.mark.parametrize("shm", SHM)
def test_worker_runs_as_process_1_without_root_and_without_a_writable_file(
    start: Callable[[str], Container], tmp_path: Path, shm: str
) -> None:
    container = start(shm)
    written, orphan = try_to_write.delay(str(tmp_path)), leave_orphan.delay()
    wait_for_end([written.pk, orphan.pk])

    supervisor_pid, user, refused = written.refresh().result
    assert (supervisor_pid, user) == (1, NOBODY)
    assert set(refused) >= {"/", "/tmp", str(tmp_path)}
    first = container.process
    assert first.uids().real == NOBODY
    wait_until(lambda: len(orphans(first)) == 2, what="process 1 adopts the orphans")
    wait_until(lambda: not orphans(first), what="the orphans are reaped")

    job = work.delay("container", 1500)
    wait_for_state(job, "running")
    first.send_signal(signal.SIGTERM)

    assert container.end() == 0
    assert job.refresh().state == "success"
    assert "Traceback" not in container.output
    assert "WARNING" not in container.output


def orphans(first: psutil.Process) -> list[psutil.Process]:
    """Return its children that are none of its own, zombies too."""
    found = []
    for child in first.children():
        with suppress(psutil.NoSuchProcess):  # reaped meanwhile
            found += [child] if child.name() == "sleep" else []
    return found
