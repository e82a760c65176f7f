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
from types import FrameType
from typing import Any

import psycopg
from django.db import DatabaseError, connections

from .. import __version__
from ..operations.rescue import Death, rescue_worker
from ..queries.workers import NewWorker, Orders
from .child import Child
from .config import WorkerConfig
from .guard import Guard, explain_death, how_it_ended
from .health import HeartbeatFile
from .lease import PROBE_SECONDS, Lease
from .maintenance import Maintenance
from .marks import Marks
from .pace import MOST_AHEAD
from .process import DRAIN, HELD_SIGNALS, STOP_AT_ONCE, STOP_SIGNALS, WorkerProcess, die_with_parent

logger = logging.getLogger("django_tenantqueue")

RESTART_SECONDS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pause before a child is replaced that died for the n-th time within a minute."""
KILL_SECONDS = 5.0
"""A child that is still there so long after its shutdown timeout is killed."""
REPORT_SECONDS = 5.0
"""How often a stopping supervisor says what it waits for."""
REPORTED = 5
"""Jobs named in such a report."""


class Supervisor:
    """Keeps `config.processes` children alive until it is told to stop."""

    def __init__(self, config: WorkerConfig, *, say: Callable[[str], None]) -> None:
        self.config = config
        self._say = say
        self._lease = Lease(config.database, config.name)
        self._maintenance = Maintenance(self._lease, config.name) if config.maintenance else None
        self._guard = Guard(config.kill_rss)
        self._heartbeat_file = HeartbeatFile(config.heartbeat_file)
        self._children: dict[int, Child] = {}
        self._dead: list[tuple[Child, Death]] = []
        self._forsaken: list[psycopg.Connection[Any]] = []
        self._deaths: dict[int, list[float]] = {}
        self._due: dict[int, float] = dict.fromkeys(range(config.processes), 0.0)
        self._stops = 0
        self._stop_at = 0.0
        self._report_at = 0.0
        self._maintain_at = 0.0
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> int:
        """Supervise until all children have ended; return the exit code."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._start_children()
        while self._children or (self._due and not self._stops):
            self._obey(self._lease.check())
            self._kill_unleased()
            self._kill_condemned()
            self._reap()
            self._rescue_dead()
            self._plan_successors()
            self._start_children()
            if self._stops:
                self._kill_late()
                self._report_stop()
            self._heartbeat_file.write(
                self._children.values(), wanted=self.config.processes, reason=self._why_not_ready()
            )
            self._sleep(min(self._maintain(), self._next_start(), self._next_limit()))
        self._rescue_dead()
        self._heartbeat_file.remove()
        if self._maintenance is not None:
            self._maintenance.close()
        connections.close_all()
        self._lease.close()
        return 0

    def _maintain(self) -> float:
        """Do the fleet's maintenance if it is due; return the seconds until something is due."""
        if self._maintenance is None:
            return PROBE_SECONDS
        if self._stops:
            self._maintenance.resign()
            return PROBE_SECONDS
        now = time.monotonic()
        if self._maintain_at <= now:
            self._maintain_at = now + self._maintenance.run_once()
        return min(PROBE_SECONDS, self._maintain_at - now)

    def _next_limit(self) -> float:
        return self._guard.seconds_to_next(self._children.values())

    def _why_not_ready(self) -> str | None:
        if self._stops:
            return "it is stopping"
        return None if self._lease.is_held else "it has no connection to the database"

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
        self._children[pid] = Child(pid, number, worker_id, marks)

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
            self._dead.append((child, explain_death(child, status)))
            if self._stops or child.has_successor or child.is_dismissed:
                continue
            # a child ends without an error only when it was told to: to stop, to drain, or burst;
            # or when it asked for a successor
            if status != 0:
                self._plan_restart(child, how_it_ended(status))
            elif child.marks.is_retiring:
                self._due[child.number] = time.monotonic()

    def _rescue_dead(self) -> None:
        """Take back what dead children held; what they had not begun loses no attempt."""
        dead, self._dead = self._dead, []
        for child, death in dead:
            try:
                rescued = rescue_worker(self.config.database, child.worker_id, death)
                if rescued.complete:
                    self._lease.end(child.worker_id)
                    continue
            except (psycopg.Error, DatabaseError) as error:
                logger.warning("the jobs of a dead child are rescued later: %s", error)
                connections[self.config.database].close()
            self._dead.append((child, death))

    def _obey(self, orders: list[Orders]) -> None:
        """Hand on what operators want of the children."""
        wanted = {order.worker_id: order for order in orders}
        for child in self._children.values():
            order = wanted.get(child.worker_id)
            if order is None:
                continue
            if order.stop and not child.told_to_stop:
                child.told_to_stop = True
                self._say(f"child {child.pid} stops: an operator asked for it")
                self._send(signal.SIGTERM, child)
            elif order.drain and not child.is_dismissed:
                child.told_to_drain = True
                self._say(f"child {child.pid} drains: an operator asked for it")
                self._send(DRAIN, child)

    def _kill_condemned(self) -> None:
        """Kill children for a job that passed its hard limit, or for their memory."""
        for child in self._guard.condemn(self._children.values()):
            assert child.sentence is not None
            logger.error("child %d is killed: %s", child.pid, child.sentence.reason)
            self._send(signal.SIGKILL, child)

    def _plan_successors(self) -> None:
        """Start a new child for each that asked for it, while that one ends what it runs.

        One that grows too fast has at most one successor at a time.
        """
        if self._stops:
            return
        numbers = [child.number for child in self._children.values()]
        for child in self._children.values():
            if child.has_successor or child.is_dismissed or not child.marks.is_retiring:
                continue
            if numbers.count(child.number) == 1 and child.number not in self._due:
                child.has_successor = True
                self._due[child.number] = time.monotonic()

    def _kill_unleased(self) -> None:
        """Kill the children when their locks are lost for too long: others rescue their jobs."""
        if self._lease.is_overdue:
            logger.error("no connection to hold the children's locks: they are killed")
            self._send(signal.SIGKILL)

    def _plan_restart(self, child: Child, why: str) -> None:
        number = child.number
        now = time.monotonic()
        if child.sentence is not None and not child.sentence.crashed:
            self._due[number] = now  # it was one job's time that was over
            return
        deaths = [at for at in self._deaths.get(number, []) if now - at < 60] + [now]
        self._deaths[number] = deaths
        pause = RESTART_SECONDS[min(len(deaths), len(RESTART_SECONDS)) - 1]
        self._say(f"child {child.pid} ended with {why}; replaced in {pause:.1f} s")
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

    def _report_stop(self) -> None:
        """Say now and then what a stopping worker waits for."""
        now = time.monotonic()
        if self._report_at == 0.0:
            self._report_at = now + 1.0
        if now < self._report_at:
            return
        self._report_at = now + REPORT_SECONDS
        marks = sorted(
            (mark for child in self._children.values() for mark in child.marks.begun()),
            key=lambda mark: mark.begun_at,
        )
        if not marks:
            return
        named = ", ".join(f"{m.job_id} ({now - m.begun_at:.0f} s)" for m in marks[:REPORTED])
        more = f" and {len(marks) - REPORTED} more" if len(marks) > REPORTED else ""
        left = max(0.0, self._stop_at + self.config.shutdown_timeout - now)
        jobs = "job" if len(marks) == 1 else "jobs"
        self._say(f"waiting up to {left:.0f} s for {len(marks)} {jobs}: {named}{more}")

    def _kill_late(self) -> None:
        late = time.monotonic() - self._stop_at
        if late > KILL_SECONDS + (self.config.shutdown_timeout if self._stops == 1 else 0.0):
            for child in self._children.values():
                child.killed_at_stop = True
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals, only: Child | None = None) -> None:
        for pid in [only.pid] if only is not None else list(self._children):
            with suppress(ProcessLookupError):  # it ended, and was waited for, just now
                os.kill(pid, number)


@contextmanager
def _stops_held() -> Iterator[None]:
    """Put off signals: one that came between a fork and its note would miss the child."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)


def close_inherited() -> None:
    """Close Django's connections before the first fork."""
    connections.close_all()
