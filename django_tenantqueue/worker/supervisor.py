"""The supervisor: starts the children, replaces those that die, hands on signals.

No user code runs here. Between looks at its children it does the maintenance, if it holds the lock.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import psycopg
from django.db import DatabaseError, connections

from .. import __version__
from ..operations.rescue import rescue_worker
from ..queries.workers import NewWorker
from .config import WorkerConfig
from .lease import PROBE_SECONDS, Lease
from .maintenance import Maintenance
from .marks import Marks
from .pace import MOST_AHEAD
from .process import STOP_AT_ONCE, STOP_SIGNALS, WorkerProcess, die_with_parent

logger = logging.getLogger("django_tenantqueue")

RESTART_SECONDS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pause before a child is replaced that died for the n-th time within a minute."""
KILL_SECONDS = 5.0
"""A child that is still there so long after its shutdown timeout is killed."""


@dataclass(frozen=True, slots=True)
class Child:
    """One child process: its place among the children, its row, and what it has begun."""

    number: int
    worker_id: int
    marks: Marks


class Supervisor:
    """Keeps `config.processes` children alive until it is told to stop."""

    def __init__(self, config: WorkerConfig, *, say: Callable[[str], None]) -> None:
        self.config = config
        self._say = say
        self._lease = Lease(config.database, config.name)
        self._maintenance = Maintenance(self._lease) if config.maintenance else None
        self._children: dict[int, Child] = {}
        self._dead: list[tuple[Child, str]] = []
        self._forsaken: list[psycopg.Connection[Any]] = []
        self._deaths: dict[int, list[float]] = {}
        self._due: dict[int, float] = dict.fromkeys(range(config.processes), 0.0)
        self._stops = 0
        self._stop_at = 0.0
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> int:
        """Supervise until all children have ended; return the exit code."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._start_children()
        while self._children or (self._due and not self._stops):
            self._lease.check()
            self._kill_unleased()
            self._reap()
            self._rescue_dead()
            self._start_children()
            self._kill_late()
            pause = PROBE_SECONDS
            if self._maintenance is not None:
                if self._stops:
                    self._maintenance.resign()
                else:
                    pause = min(pause, self._maintenance.run_once())
            self._sleep(min(pause, self._next_start()))
        self._rescue_dead()
        if self._maintenance is not None:
            self._maintenance.close()
        connections.close_all()
        self._lease.close()
        return 0

    def _sleep(self, seconds: float) -> None:
        select.select([self._wake_read], [], [], max(0.0, seconds))
        try:
            while os.read(self._wake_read, 512):
                pass
        except BlockingIOError:
            pass

    def _next_start(self) -> float:
        return min((due - time.monotonic() for due in self._due.values()), default=1.0)

    def _start_children(self) -> None:
        now = time.monotonic()
        for number in [n for n, due in self._due.items() if due <= now]:
            with _stops_held():
                if self._stops:
                    return
                self._start_child(number)

    def _start_child(self, number: int) -> None:
        """Register a child, take its lock, and fork it; try again later without a database."""
        name = f"{self.config.name}.{number}"
        try:
            worker_id = self._lease.register(self._description(name))
        except psycopg.Error as error:
            logger.warning("child %d is started later: %s", number, error)
            self._due[number] = time.monotonic() + 1.0
            return
        marks = Marks(self.config.threads + MOST_AHEAD + self.config.async_slots)
        del self._due[number]
        pid = self._fork(name, worker_id, marks)
        self._children[pid] = Child(number, worker_id, marks)

    def _description(self, name: str) -> NewWorker:
        return NewWorker(
            name=name,
            host=socket.gethostname(),
            pid=os.getpid(),
            supervisor_pid=os.getpid(),
            version=__version__,
            queues=self.config.queues,
            exclude_queues=self.config.exclude_queues,
            tenants=self.config.tenants,
            threads=self.config.threads,
            async_slots=self.config.async_slots,
        )

    def _fork(self, name: str, worker_id: int, marks: Marks) -> int:
        """Fork a child. Stop signals are held, until it has its own handlers for them."""
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        code = 70
        try:
            die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._forsake()
            code = WorkerProcess(self.config, name, worker_id, marks).run()
        except BaseException:
            logger.exception("child %s failed", name)
        finally:
            os._exit(code)

    def _forsake(self) -> None:
        """In a forked child: leave the supervisor's connections alone without ending them.

        Their sockets are shared with the supervisor: what a clean-up here would send, goodbye, must
        go nowhere.
        """
        nowhere = os.open(os.devnull, os.O_RDWR)
        django = connections[self.config.database]
        self._forsaken = [c for c in (self._lease.connection, django.connection) if c is not None]
        for connection in self._forsaken:
            if not connection.closed:
                os.dup2(nowhere, connection.fileno())
        self._lease.connection = None
        django.connection = None

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is None:
                continue
            why = _why(status)
            self._dead.append((child, why))
            # a child ends without an error only when it was told to: to stop, to drain, or burst
            if not self._stops and status != 0:
                self._plan_restart(child.number, pid, why)

    def _rescue_dead(self) -> None:
        """Take back what dead children held; what they had not begun loses no attempt."""
        dead, self._dead = self._dead, []
        for child, why in dead:
            try:
                rescued = rescue_worker(
                    self.config.database,
                    child.worker_id,
                    reason=f"its worker process ended with {why}",
                    started=child.marks.begun(),
                )
                if rescued.complete:
                    self._lease.end(child.worker_id)
                    continue
            except (psycopg.Error, DatabaseError) as error:
                logger.warning("the jobs of a dead child are rescued later: %s", error)
                connections[self.config.database].close()
            self._dead.append((child, why))

    def _kill_unleased(self) -> None:
        """Kill the children when their locks are lost for too long: others rescue their jobs."""
        if self._lease.is_overdue:
            logger.error("no connection to hold the children's locks: they are killed")
            self._send(signal.SIGKILL)

    def _plan_restart(self, number: int, pid: int, why: str) -> None:
        now = time.monotonic()
        deaths = [at for at in self._deaths.get(number, []) if now - at < 60] + [now]
        self._deaths[number] = deaths
        pause = RESTART_SECONDS[min(len(deaths), len(RESTART_SECONDS)) - 1]
        self._say(f"child {pid} ended with {why}; replaced in {pause:.1f} s")
        self._due[number] = now + pause

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self._stops += 1
        self._stop_at = time.monotonic()
        name = signal.Signals(number).name
        if self._stops == 1:
            self._say(
                f"{name}: no new jobs; running ones have {self.config.shutdown_timeout:.0f} s to "
                "end (once more: stop at once)"
            )
        self._send(signal.SIGTERM if self._stops == 1 else STOP_AT_ONCE)

    def _kill_late(self) -> None:
        if not self._stops:
            return
        late = time.monotonic() - self._stop_at
        if late > KILL_SECONDS + (self.config.shutdown_timeout if self._stops == 1 else 0.0):
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        for pid in list(self._children):
            with suppress(ProcessLookupError):  # it ended, and was waited for, just now
                os.kill(pid, number)


@contextmanager
def _stops_held() -> Iterator[None]:
    """Put off stop signals: one that came between a fork and its note would miss the child."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _why(status: int) -> str:
    """Say how a process ended, from its wait status."""
    code = os.waitstatus_to_exitcode(status)
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def close_inherited() -> None:
    """Close Django's connections before the first fork."""
    connections.close_all()
