"""The children of one supervisor: starts them, notes how they end, starts others in their place."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from django.db import connections

from ... import __version__
from ...operations.rescue import DeathReport
from ...queries.workers import NewWorker
from ..child.claim_ahead import MOST_AHEAD
from ..child.process import FAILED, HELD_SIGNALS, WorkerProcess, die_with_parent
from ..config import WorkerConfig
from ..shared_memory import SharedMemory
from .child import Child
from .kill_limits import explain_death, how_it_ended
from .lease import KEEPALIVE, Lease

logger = logging.getLogger("django_tenantqueue")

RESTART_SECONDS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pause before a child is replaced that died idle for the n-th time within a minute."""
PATIENT_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25000,
}
"""Of a child's connections unless the project says otherwise: given up after 25 s of silence."""


class Children:
    """Keeps `config.processes` children alive until `stopping` is set."""

    def __init__(
        self,
        config: WorkerConfig,
        lease: Lease,
        *,
        say: Callable[[str], None],
        in_child: Callable[[], None],
    ) -> None:
        self.refused: psycopg.Error | None = None
        """Why no child can be started: the role lacks a right, and no time may pass."""
        self.stopping = False
        """No child is started any more. Set by signal handlers."""
        self._config = config
        self._lease = lease
        self._say = say
        self._in_child = in_child
        self._by_pid: dict[int, Child] = {}
        self._due: dict[int, float] = dict.fromkeys(range(config.processes), 0.0)
        """Number of a child to be started -> when (monotonic time)."""
        self._deaths: dict[int, list[float]] = {}
        self._forsaken: list[psycopg.Connection[Any]] = []
        self._options = DatabaseOptions(config.database)

    def __len__(self) -> int:
        return len(self._by_pid)

    def __iter__(self) -> Iterator[Child]:
        return iter(list(self._by_pid.values()))

    @property
    def are_gone(self) -> bool:
        """Whether none is left, and none will be started."""
        return not self._by_pid and (self.stopping or not self._due)

    def why_not_ready(self) -> str | None:
        """Say why not all claim jobs, if they do not.

        A child whose loop has not turned for a minute is stopped, or busy in C code.
        """
        wanted = self._config.processes
        serving = [child for child in self if not child.is_dismissed]
        if len({child.number for child in serving}) < wanted:
            run = "runs" if wanted == 1 else "run"
            return f"{len(serving)} of {wanted} {'process' if wanted == 1 else 'processes'} {run}"
        for child in serving:
            is_alone = sum(other.number == child.number for other in serving) == 1
            if is_alone and not child.shared_memory.has_beaten:
                return f"process {child.pid} has written no heartbeat yet"
            stuck = child.shared_memory.stuck_seconds
            if stuck > 60.0:
                return f"process {child.pid} has not answered for {stuck:.0f} s"
        return None

    def send(self, number: signal.Signals, only: Child | None = None) -> None:
        """Send a signal to all, or to one."""
        for pid in [only.pid] if only is not None else list(self._by_pid):
            with suppress(ProcessLookupError):  # it ended, and was waited for, just now
                os.kill(pid, number)

    # start

    def seconds_to_next_start(self) -> float:
        """Return the seconds until the next start of a child."""
        if self.stopping:
            return 1.0
        return min((due - time.monotonic() for due in self._due.values()), default=1.0)

    def start_due(self) -> None:
        """Start the children whose time has come."""
        self._options.change_for_supervisor()
        now = time.monotonic()
        for number in [n for n, due in self._due.items() if due <= now]:
            with _signals_held():
                if self.stopping:
                    return
                self._start(number)

    def _start(self, number: int) -> None:
        """Register a child, take its lock, and fork it; try again later if that fails."""
        name = f"{self._config.name}.{number}"
        shared_memory = SharedMemory(self._config.threads + MOST_AHEAD + self._config.async_slots)
        try:
            worker_id = self._lease.register(self._description(name))
        except psycopg.Error as error:
            self._put_off(number, error)
            return
        try:
            pid = self._fork(name, worker_id, shared_memory)
        except OSError as error:  # the system has no process left, say
            with suppress(psycopg.Error):
                self._lease.cancel(worker_id)
            self._put_off(number, error)
            return
        del self._due[number]
        self._by_pid[pid] = Child(pid, number, worker_id, shared_memory)

    def _put_off(self, number: int, error: Exception) -> None:
        if self._config.until_empty and isinstance(error, psycopg.errors.InsufficientPrivilege):
            self.refused = error
            self._due.clear()
            return
        logger.warning("starting child %d failed, retrying: %s", number, error)
        self._due[number] = time.monotonic() + 1.0

    def _description(self, name: str) -> NewWorker:
        return NewWorker(
            name=name,
            host=socket.gethostname(),
            pid=os.getpid(),
            supervisor_pid=os.getpid(),
            version=__version__,
            queues=self._config.queues,
            exclude_queues=self._config.exclude_queues,
            tenants=self._config.tenants,
            threads=self._config.threads,
            async_slots=self._config.async_slots,
            role="worker" if self._config.dispatch is None else "dispatcher",
            executor=self._config.dispatch or "",
        )

    def _fork(self, name: str, worker_id: int, shared_memory: SharedMemory) -> int:
        """Fork a child. Signals are held, until it has its own handlers for them."""
        sys.stdout.flush()
        sys.stderr.flush()
        gc.collect()
        gc.freeze()  # a later collection would write to each object, and so copy the shared pages
        parent = os.getpid()
        with self._lease.at_rest(), warnings.catch_warnings():
            # the thread of the lease does nothing meanwhile
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid:
            return pid
        code = FAILED
        try:
            die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._in_child()
            self._forsake()
            self._options.change_for_child()
            code = WorkerProcess(self._config, name, worker_id, shared_memory).run()
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
        django = connections[self._config.database]
        self._forsaken = [c for c in (self._lease.connection, django.connection) if c is not None]
        for connection in self._forsaken:
            if not connection.closed:
                os.dup2(nowhere, connection.fileno())
        self._lease.connection = None
        django.connection = None

    # end

    def reap(self) -> list[tuple[Child, DeathReport]]:
        """Return the children that have ended, and how; plan those that take their places."""
        ended = []
        while self._by_pid:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            child = self._by_pid.pop(pid, None)
            if child is not None:
                ended.append((child, explain_death(child, status)))
                self._plan_replacement(child, status)
        return ended

    def _plan_replacement(self, child: Child, status: int) -> None:
        if self.stopping or child.has_successor or child.is_dismissed:
            return
        now = time.monotonic()
        if status == 0 and child.shared_memory.is_leaving and child.shared_memory.is_retiring:
            self._due[child.number] = now
            return
        pause = 0.0
        # one that had begun jobs could live: it is they that count an attempt, and wait
        if not child.begun():
            deaths = [at for at in self._deaths.get(child.number, []) if now - at < 60] + [now]
            self._deaths[child.number] = deaths
            pause = RESTART_SECONDS[min(len(deaths), len(RESTART_SECONDS)) - 1]
        self._say(f"child {child.pid} ended with {how_it_ended(status)}; replaced in {pause:.1f} s")
        self._due[child.number] = now + pause

    def plan_successors(self) -> None:
        """Start a new child for each that asked for it, while that one ends what it runs.

        One that grows too fast has at most one successor at a time.
        """
        if self.stopping:
            return
        numbers = [child.number for child in self]
        for child in self:
            if child.has_successor or child.is_dismissed or not child.shared_memory.is_retiring:
                continue
            if numbers.count(child.number) == 1 and child.number not in self._due:
                child.has_successor = True
                self._due[child.number] = time.monotonic()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Put off signals: one that came between a fork and its note would miss the child."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)


class DatabaseOptions:
    """Changes them for the supervisor, and for each child once it is forked.

    The supervisor has no pool: a child would share its sockets with the supervisor and with other
    children, and would lack its threads. Its connection notices a vanished server as soon as the
    lease does: while it waits there, children whose locks are lost live on.
    """

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._before: dict[str, dict[str, Any]] = {}

    def change_for_supervisor(self) -> None:
        """Close the pools, let connections come from none, and let the lease's times hold."""
        if self._before:
            return
        for alias in connections:
            options = connections.settings[alias]["OPTIONS"]
            close_pool = options.get("pool") and getattr(connections[alias], "close_pool", None)
            if close_pool:
                connections[alias].close()
                close_pool()
                self._before[alias] = dict(options)
                del options["pool"]
        options = connections.settings[self._alias]["OPTIONS"]
        self._before.setdefault(self._alias, dict(options))
        options.update(KEEPALIVE)

    def change_for_child(self) -> None:
        """Let the project's own hold again; pools are made when they are first needed.

        They test a connection before they hand it out: the server may have ended it meanwhile, and
        that would cost a job an attempt.
        """
        for alias, before in self._before.items():
            options = connections.settings[alias]["OPTIONS"]
            options.clear()
            options.update(before)
        self._before.clear()
        for alias in connections:
            if connections.settings[alias]["OPTIONS"].get("pool"):
                connections.settings[alias]["CONN_HEALTH_CHECKS"] = True
        for name, value in PATIENT_KEEPALIVE.items():
            connections.settings[self._alias]["OPTIONS"].setdefault(name, value)
