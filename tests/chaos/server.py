"""A PostgreSQL of the run's own, which it may stop and start as it likes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from example_project.postgres import Cluster

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 60.0
SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
"""What tells the server how to stop: `fast` ends all sessions, `immediate` is a crash."""


class Server:
    """The server and its address."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.url = cluster.start()

    def stop(self, mode: str) -> None:
        """Stop it in one of PostgreSQL's modes."""
        pid = self.cluster.pid
        if pid is None:
            return
        os.kill(pid, SIGNALS[mode])
        end = time.monotonic() + STOP_SECONDS
        while self.cluster.pid is not None:
            if time.monotonic() > end:
                raise TimeoutError(f"the server has not stopped ({mode}) within {STOP_SECONDS} s")
            time.sleep(0.02)

    def start(self) -> None:
        """Start it again, at the same address."""
        if self.cluster.start() != self.url:
            raise RuntimeError(f"somebody else has taken the port of {self.url}")


@contextmanager
def private_server() -> Iterator[Server]:
    """Yield a new server; it goes away with this process, even when that is killed."""
    directory = Path(tempfile.mkdtemp(prefix="tenantqueue-"))
    directory.chmod(0o755)
    try:
        cluster = Cluster(directory)
    except BaseException:
        directory.rmdir()
        raise
    guard = subprocess.Popen(
        [sys.executable, "-m", "example_project.postgres", "guard", f"--data-dir={directory}"],
        stdin=subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        yield Server(cluster)
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait(timeout=90)
