"""The PostgreSQL server under measurement: its databases, processes and write-ahead log."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg
from psycopg import sql

APPLICATION = "benchmark"
"""Application name of the benchmark's own connections."""

EMBEDDED_SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
"""What the embedded server gets beyond the project's defaults; commits stay durable."""

SHOWN_SETTINGS = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "data_checksums",
    "wal_level",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "max_connections",
    "autovacuum",
    "jit",
)


class Server:
    """A server, and the databases that were made on it for this run."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._admin = psycopg.connect(url, autocommit=True, application_name=APPLICATION)
        self._made: list[str] = []
        self.postmaster = self._find_postmaster()

    def create_database(self, name: str) -> str:
        """Make a database for this run and return its URL."""
        name = f"tenantqueue_benchmark_{os.getpid()}_{name}"
        self._admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        self._made.append(name)
        return urlsplit(self.url)._replace(path=f"/{name}").geturl()

    def close(self) -> None:
        """Drop what was made and close the connection."""
        for name in self._made:
            self._admin.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )
        self._admin.close()

    def wal_bytes(self) -> float:
        """Return how much write-ahead log the server has made so far."""
        # The insert position: the write position lags behind it until the next commit.
        return float(self._value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    def cpu_seconds(self) -> float | None:
        """Return the CPU time of all processes of the server, ended ones included.

        None when the server's processes are not on this machine.
        """
        if self.postmaster is None:
            return None
        try:
            family = [self.postmaster, *self.postmaster.children()]
            own = self.postmaster.cpu_times()
        except psutil.Error:
            return None
        # The postmaster has waited for every process that ended: their times are in its own.
        return sum(map(_thread_cpu, family)) + own.children_user + own.children_system

    def checkpoint(self) -> None:
        """Write a checkpoint, where the role may."""
        with suppress(psycopg.errors.InsufficientPrivilege):
            self._admin.execute("CHECKPOINT")

    def settings(self) -> dict[str, str]:
        """Return the settings that decide about speed."""
        rows = self._admin.execute(
            "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY (%s)",
            [list(SHOWN_SETTINGS)],
        ).fetchall()
        found: dict[str, str] = dict(rows)
        return {name: found[name] for name in SHOWN_SETTINGS if name in found}

    def version(self) -> str:
        """Return the server's version."""
        return str(self._value("SHOW server_version"))

    def _value(self, query: str) -> Any:
        row = self._admin.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]

    def _find_postmaster(self) -> psutil.Process | None:
        # A server behind a forwarded port has its processes elsewhere: the id of a backend then
        # belongs to nobody here, or to another program.
        try:
            backend = psutil.Process(int(self._value("SELECT pg_backend_pid()")))
            parent = backend.parent()
            return parent if parent is not None and "postgres" in backend.name() else None
        except psutil.Error:
            return None


def _thread_cpu(process: psutil.Process) -> float:
    """Return the CPU time of a process of one thread, to the microsecond where the kernel tells it.

    Its other counters go in steps of 10 ms for each process, and a big fleet has hundreds.
    """
    try:
        spent = int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        spent = 0
    return spent / 1e9 if spent else process_cpu(process)


def process_cpu(process: psutil.Process) -> float:
    """Return the CPU time of one process, 0 when it has ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
