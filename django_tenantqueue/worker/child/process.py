"""One child of the supervisor: an event loop, threads, and the claim loop beside them."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
import threading
import time
from functools import partial
from typing import NoReturn

import psycopg
from django.db import connections

from ...calls import tracing
from ...exceptions import Cancelled, TimeLimitExceeded
from ...execution.job_log import name_worker
from ...executors import load_executor
from ...queries import workers as queries
from ...text import number_of
from ..config import KILL_SECONDS, WorkerConfig
from ..connection import REMINDER_SECONDS, WorkerConnection, connect
from ..shared_memory import SharedMemory
from . import orm_thread
from .dispatch import DispatchLoop
from .executors import LoopExecutor, ThreadExecutor, logged, repeat_interruption
from .loop import ClaimLoop

logger = logging.getLogger("django_tenantqueue")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Signals that stop a supervisor. It passes the first one on to its children as SIGTERM."""
STOP_AT_ONCE = signal.SIGQUIT
"""The signal that the supervisor passes on for the second one. It is another signal on purpose: a
terminal and systemd signal every process, and the child must not take that for a second one."""
DRAIN = signal.SIGUSR1
"""The signal that makes a child drain without a time limit, by an operator's order."""
HELD_SIGNALS = (*STOP_SIGNALS, DRAIN)
"""Signals that are held back while a child is forked, until it can handle them."""
FAILED = os.EX_SOFTWARE
"""The exit code of a process that has failed by itself."""


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its supervisor dies (on Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent_pid:
            os._exit(1)


def _end_at_once() -> NoReturn:
    """End the process even if other threads run, or one blocks the event loop."""
    _flush()
    logging.shutdown()  # which flushes the streams of its handlers
    os._exit(0)


def _flush() -> None:
    """Write what is buffered, by a tracer, too: os._exit() calls no exit handler of it."""
    if tracing.active is not None:
        tracing.active.flush()
    sys.stdout.flush()
    sys.stderr.flush()


def _attend_forks(loop: asyncio.AbstractEventLoop) -> None:
    """Keep a process that a job forks from acting as this worker; called in the loop's thread.

    Signals are blocked during the fork. A signal that reached the copy too early would be reported
    to this process by the pipe that both share, and the copy would not end.
    """
    numbers, masks = {*HELD_SIGNALS, STOP_AT_ONCE}, threading.local()

    def block() -> None:
        masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.before)

    leave = partial(_leave_to_original, loop, threading.get_ident())
    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=leave)
    os.register_at_fork(after_in_child=unblock)  # called after the first one


def _leave_to_original(loop: asyncio.AbstractEventLoop, thread_id: int) -> None:
    """In a process that a job has forked: leave signals and coroutines to the original.

    The pipe that reports signals to the loop is shared. The copy may run its own code for any time.
    When it comes back to the loop, which has the coroutines of other jobs, it ends.
    """
    signal.set_wakeup_fd(-1)
    for number in (*HELD_SIGNALS, STOP_AT_ONCE):
        signal.signal(number, signal.SIG_DFL)
    if threading.get_ident() == thread_id:
        getattr(loop, "_ready", []).clear()  # asyncio's own loop has it
        loop.call_soon(_end_copy)


def _end_copy() -> None:
    os.write(
        2,
        f"a coroutine forked this process, {os.getpid()}, and both came back to the event loop: "
        "this one ends\n".encode(),
    )
    os._exit(FAILED)


def _close_generators(loop: asyncio.AbstractEventLoop) -> None:
    """Close the asynchronous generators that are open, as asyncio.run() does: HTTP connections."""
    try:
        closing = asyncio.wait_for(loop.shutdown_asyncgens(), KILL_SECONDS * 0.4)
        loop.run_until_complete(closing)
    except Exception:
        logger.exception("closing an asynchronous generator failed")


class WorkerProcess:
    """Runs jobs until it is stopped, or, with --until-empty, until none are left."""

    def __init__(
        self, config: WorkerConfig, name: str, worker_id: int, shared_memory: SharedMemory
    ) -> None:
        self.config = config
        self.name = name
        self._shared_memory = shared_memory
        self._stop_at: float | None = None
        self._at_once = False
        self._worker_id = worker_id
        self._claim_loop: ClaimLoop
        self._is_done = False
        """The claim loop has ended, and the event loop may."""

    def run(self) -> int:
        """Run; return the exit code."""
        name_worker(self.name)
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._attend_signals(loop)
        orm_thread.install()
        sys.unraisablehook = repeat_interruption
        _attend_forks(loop)
        claim_loop = self._claim_loop = self._make_loop(loop)
        thread = threading.Thread(
            target=self._drive, args=(claim_loop, loop), name="tenantqueue-claim-loop", daemon=True
        )
        loop.call_soon(thread.start)
        self._turn(loop)
        thread.join()
        _close_generators(loop)
        _flush()
        return 0

    def _make_loop(self, loop: asyncio.AbstractEventLoop) -> ClaimLoop:
        made = (self.config, self._worker_id, self._sign_on(), self._reconnect, self._shared_memory)
        if self.config.dispatch is not None:
            return DispatchLoop(load_executor(self.config.dispatch), *made)
        claim_loop = ClaimLoop(*made)
        report = logged(claim_loop.report) if self.config.log_jobs else claim_loop.report
        claim_loop.claimed_jobs.threads = ThreadExecutor(
            self.config.threads, self._worker_id, report
        )
        claim_loop.claimed_jobs.loop = LoopExecutor(loop, report)
        return claim_loop

    def _sign_on(self) -> WorkerConnection:
        """Connect and write the process id, however long the server is away."""
        pause, reminder_at = 0.1, 0.0
        while True:
            try:
                connection = self._reconnect()
                queries.sign_on_worker(connection, self._worker_id, os.getpid())
                return connection
            except psycopg.OperationalError as error:
                if time.monotonic() >= reminder_at:
                    reminder_at = time.monotonic() + REMINDER_SECONDS
                    logger.warning(
                        "%s: registering the worker process failed, retrying: %s",
                        self.name,
                        error,
                    )
            time.sleep(pause)
            pause = min(2.0, pause * 2)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the event loop until the claim loop has ended, even if jobs stop or break it.

        The exception that stops a blocking coroutine may arrive after the coroutine has ended.
        """
        while not self._is_done:
            try:
                loop.run_forever()
                if not self._is_done:
                    logger.error("%s: a job stopped the event loop, which was restarted", self.name)
            except (TimeLimitExceeded, Cancelled):
                logger.info("%s: a coroutine ended before it was interrupted", self.name)
            except BaseException:
                if loop.is_closed():
                    raise
                logger.exception(
                    "%s: a job raised in the event loop, which was restarted", self.name
                )

    def _attend_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the loop handle signals, also those that were held back during the fork."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        loop.add_signal_handler(signal.SIGTERM, self._ask_stop)
        loop.add_signal_handler(STOP_AT_ONCE, self._ask_stop, True)
        loop.add_signal_handler(DRAIN, self._drain)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)

    def _reconnect(self) -> WorkerConnection:
        return connect(self.config.database, f"tenantqueue {self.name}")

    def _drain(self) -> None:
        self._claim_loop.claimed_jobs.draining = True
        self._claim_loop.waiter.wake()

    def _ask_stop(self, at_once: bool = False) -> None:
        if self._stop_at is None:
            self._stop_at = time.monotonic()
        self._at_once = self._at_once or at_once
        logger.debug("%s: stop requested%s", self.name, " at once" if at_once else "")
        self._drain()

    def _drive(self, claim_loop: ClaimLoop, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while not self._is_over(claim_loop):
                claim_loop.wait(claim_loop.run_once())
            self._shared_memory.leave()
            if self.config.until_empty and not claim_loop.claimed_jobs.draining:
                self._shared_memory.dismiss()
            left = claim_loop.abandon()
            claim_loop.close()
            if left:
                logger.warning(
                    "%s stops; still running and returned: %s", self.name, number_of("job", left)
                )
                _end_at_once()
        except BaseException:
            logger.exception("%s: the worker's loop failed", self.name)
            os._exit(FAILED)
        finally:
            connections.close_all()
            self._is_done = True
            loop.call_soon_threadsafe(loop.stop)

    def _is_over(self, claim_loop: ClaimLoop) -> bool:
        if self._stop_at is not None:
            claim_loop.return_unstarted()
            late = time.monotonic() - self._stop_at > self.config.shutdown_timeout
            return claim_loop.drained() or late or self._at_once
        if claim_loop.claimed_jobs.draining:
            return claim_loop.drained()
        if self.config.until_empty:
            # two claims in a row have found nothing
            return claim_loop.drained() and claim_loop.next_claim.idle_rounds >= 2
        return False
