"""A server that goes away with the process that asked for it, even when that is killed.

A guard process waits for the end of its standard input, which only the asking process holds
open, and then stops the server and removes its files.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .cluster import Cluster
from .errors import PostgresError

PROJECT = Path(__file__).resolve().parents[2]


@contextmanager
def temporary_cluster(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the URL of a new server in a temporary directory; remove both at the end."""
    directory = Path(tempfile.mkdtemp(prefix="tenantqueue-"))
    directory.chmod(0o755)
    try:
        cluster = Cluster(directory)
    except PostgresError:
        directory.rmdir()
        raise
    guard = subprocess.Popen(
        [sys.executable, "-m", "example_project.postgres", "guard", f"--data-dir={directory}"],
        stdin=subprocess.PIPE,
        cwd=PROJECT,
        start_new_session=True,  # Ctrl-C goes to the asking process, not to the guard
    )
    try:
        yield cluster.start(settings=settings)
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait(timeout=90)


def guard(data_dir: Path) -> None:
    """Wait for the end of standard input, then remove the cluster."""
    cluster = Cluster(data_dir)
    sys.stdin.buffer.read()
    cluster.destroy()
