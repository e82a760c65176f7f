"""What a stretch of time has cost: the server, the Python processes, and everybody else."""

from __future__ import annotations

import os
import time
from typing import Protocol

import psutil

from .results import Cost
from .server import Server, process_cpu

QUIET_CORES = 0.15
QUIET_SECONDS = 1.0


class Spender(Protocol):
    """Something whose CPU time can be read."""

    def cpu_seconds(self) -> float:
        """Return the CPU time used so far."""


class Meter:
    """Reads all counters at its start, and again in read().

    Without `workers` it is this process whose Python is measured; `beside` are workers that run
    meanwhile and are not.
    """

    def __init__(
        self, server: Server, workers: Spender | None = None, *, beside: Spender | None = None
    ) -> None:
        self._server = server
        self._workers = workers
        self._beside = beside
        self._me = psutil.Process(os.getpid())
        self._began = self._counters()

    def _counters(self) -> tuple[float, float, float | None, float, float, float]:
        return (
            time.monotonic(),
            self._server.wal_bytes(),
            self._server.cpu_seconds(),
            sum(w.cpu_seconds() for w in (self._workers, self._beside) if w is not None),
            process_cpu(self._me),
            _busy_seconds(),
        )

    def read(self) -> Cost:
        """Return what was used since the start."""
        began, wal, server, workers, own, busy = self._began
        now, wal_now, server_now, workers_now, own_now, busy_now = self._counters()
        seconds = max(1e-6, now - began)
        server_cpu = None if server is None or server_now is None else server_now - server
        workers_cpu, own_cpu = workers_now - workers, own_now - own
        others = busy_now - busy - (server_cpu or 0.0) - workers_cpu - own_cpu
        return Cost(
            seconds=seconds,
            server_cpu_seconds=server_cpu,
            wal_bytes=wal_now - wal,
            python_cpu_seconds=own_cpu if self._workers is None else workers_cpu,
            other_cores=max(0.0, others / seconds),
        )


def wait_for_quiet(patience: float) -> bool:
    """Wait until the machine has been idle for a second; False when `patience` was not enough.

    For the moment before a measurement, when nothing of the benchmark works.
    """
    end = time.monotonic() + patience
    while True:
        busy, began = _busy_seconds(), time.monotonic()
        time.sleep(QUIET_SECONDS)
        if (_busy_seconds() - busy) / (time.monotonic() - began) < QUIET_CORES:
            return True
        if time.monotonic() > end:
            return False


def _busy_seconds() -> float:
    """Return the time in which the machine's cores were not idle, or were taken from it."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    # guest times are contained in user and nice
    doubled = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return float(sum(times) - idle - doubled)
