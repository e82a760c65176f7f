"""Where jobs run: threads for blocking tasks, an event loop for coroutines."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import logging
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable

from asgiref.sync import sync_to_async
from django.core.cache import caches
from django.db import close_old_connections, connections

from ...exceptions import Cancelled, TenantQueueError, TimeLimitExceeded
from ...execution.connection_state import close_ended_connections, reset_connections
from ...execution.current_job import RunningJob, running_or_none
from ...execution.job_log import log_end
from ...execution.outcome import Outcome, judge
from ...execution.run import run_async, run_sync
from ...executors import Executor
from ...states import State
from ..connection import PROBE_SECONDS

logger = logging.getLogger("django_tenantqueue")

MOST_FAILURES = 10
"""A thread in which this many jobs in a row fail within a second is replaced."""

Report = Callable[[RunningJob, Outcome], None]
"""Called with each outcome, in the thread where the job ran."""


def logged(report: Report) -> Report:
    """Return a `report` that also logs the ends that are no failures; those are logged already.

    In the thread where the job ran, after its end was reported: a slow log delays no claim.
    """

    def report_and_log(running: RunningJob, outcome: Outcome) -> None:
        report(running, outcome)
        state = State.SUCCESS.value if outcome.stored else None
        if outcome.finished is not None:
            state = outcome.finished.state
        if state in (State.SUCCESS, State.CANCELLED):
            log_end(running, state)

    return report_and_log


class ThreadExecutor(Executor):
    """A fixed number of threads, each with Django connections of its own."""

    def __init__(self, size: int, worker_id: int, report: Report) -> None:
        self.size = size
        self._worker_id = worker_id
        self._report = report
        self._jobs: queue.SimpleQueue[RunningJob | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._revoked: set[tuple[int, int]] = set()
        """Claims, not jobs: one that was given back may have been claimed here again."""
        self._threads: list[threading.Thread] = []

    def submit(self, jobs: list[RunningJob]) -> None:
        """Run jobs as threads become free, in this order."""
        for running in jobs:
            self._jobs.put(running)
        while len(self._threads) < self.size and self._jobs.qsize():
            self._threads.append(self._start(len(self._threads)))

    def _start(self, number: int) -> threading.Thread:
        thread = threading.Thread(
            target=self._loop, args=(number,), name=f"tenantqueue-{number}", daemon=True
        )
        thread.start()
        return thread

    def revoke(self, running: RunningJob) -> bool:
        """Take back a job that no thread has begun; False when it is too late."""
        with self._lock:
            if running._started is not None or running._thread_id is not None:
                return False
            self._revoked.add(_claim(running))
            return True

    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        """Raise `error` in the thread that runs the job, at its next bytecode."""
        with self._lock:
            if running._thread_id is None or running._ended is not None:
                return
            raise_in_thread(running._thread_id, error)

    def stop(self) -> None:
        """End idle threads."""
        for _ in self._threads:
            self._jobs.put(None)

    def _begin(self, running: RunningJob) -> bool:
        with self._lock:
            if _claim(running) in self._revoked:
                self._revoked.discard(_claim(running))
                return False
            running._thread_id = threading.get_ident()
            return True

    def _loop(self, number: int) -> None:
        _make_caches()
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        failures = Failures()
        has_connections = False
        while (running := self._jobs.get()) is not None:
            outcome: Outcome | None = None
            try:
                if not self._begin(running):
                    continue
                if has_connections:
                    close_old_connections()
                    close_ended_connections()
                # context variables (language, time zone, decimal precision) end with the job
                outcome = contextvars.copy_context().run(run_sync, running, self._worker_id)
                with self._lock:  # from here on nothing interrupts this job
                    running._thread_id = None
            except BaseException as error:  # noqa: BLE001 - else a slot is lost for ever
                # an interruption that arrived before or after the task's own code
                outcome = outcome or judge(running, None, error)
            self._report(running, outcome)
            has_connections = reset_connections()
            signal.pthread_sigmask(signal.SIG_SETMASK, signals)
            if failures.are_many(outcome):
                logger.warning(
                    "thread %s is replaced: %s jobs in a row failed within a second",
                    number,
                    MOST_FAILURES,
                )
                self._threads[number] = self._start(number)
                break
        connections.close_all()


class Failures:
    """Counts the jobs in a row that failed in one thread."""

    def __init__(self) -> None:
        self._count = 0
        self._since = 0.0

    def are_many(self, outcome: Outcome) -> bool:
        """Note an outcome; return whether the last MOST_FAILURES failed within a second."""
        if outcome.failed is None and not _is_error(outcome):
            self._count = 0
            return False
        now = time.monotonic()
        if not self._count or now - self._since > 1.0:
            self._count, self._since = 0, now
        self._count += 1
        return self._count >= MOST_FAILURES


def _make_caches() -> None:
    """Create this thread's cache backends in its own context, which the contexts of jobs copy.

    Created in the context of a job, they would reconnect to their servers with each job.
    """
    try:
        for alias in caches:
            caches[alias]
    except Exception:
        logger.exception("creating a cache of CACHES failed")


def raise_in_thread(thread_id: int | None, error: type[TenantQueueError]) -> None:
    """Raise `error` in a thread at its next bytecode; nothing happens when it has none to run."""
    if thread_id is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread_id), ctypes.py_object(error)
        )


def repeat_interruption(unraisable: sys.UnraisableHookArgs) -> None:
    """Repeat an interruption that hit a destructor, where Python ignores it (a hook of sys).

    Raised from here it would be ignored again: the worker's next check of its jobs raises it.
    """
    running = running_or_none()
    if unraisable.exc_type in (Cancelled, TimeLimitExceeded) and running is not None:
        running._interrupted = False
    else:
        sys.__unraisablehook__(unraisable)


def _claim(running: RunningJob) -> tuple[int, int]:
    return running.id, running._claimed.claim_seq


def _close_stale() -> None:
    try:
        close_old_connections()
    except BaseException:
        logger.exception("closing old database connections failed")


def _close_dead() -> None:
    """Close connections of this thread that do not answer, and leave old ones to their readers."""
    try:
        for connection in connections.all(initialized_only=True):
            if connection.connection is None or connection.in_atomic_block:
                continue
            if not connection.is_usable():
                connection.close()
    except BaseException:
        logger.exception("closing dead database connections failed")


def _is_error(outcome: Outcome) -> bool:
    return outcome.finished is not None and outcome.finished.state == State.ERROR


class LoopExecutor(Executor):
    """Runs coroutine jobs as tasks of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, report: Report) -> None:
        self._loop = loop
        self._report = report
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._try_at = 0.0
        self._trying: asyncio.Task[None] | None = None

    def submit(self, jobs: list[RunningJob]) -> None:
        """Start jobs; may be called from any thread."""
        self._loop.call_soon_threadsafe(self._start, jobs)

    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        """Cancel the coroutine of a job; called in the claim loop's thread.

        A coroutine that blocks the loop cannot be cancelled: `error` is raised in its thread.
        """
        reason = "cancelled while it ran" if error is Cancelled else "it ran too long"
        heard = threading.Event()
        self._loop.call_soon_threadsafe(self._cancel, running.id, reason, heard)
        if heard.wait(0.2):
            return  # else a coroutine blocks the loop
        task = self._tasks.get(running.id)
        if task is not None and asyncio.current_task(self._loop) is task:
            raise_in_thread(running._thread_id, error)

    def revoke(self, running: RunningJob) -> bool:
        """Return False: coroutines begin as soon as they are claimed."""
        return False

    def _start(self, jobs: list[RunningJob]) -> None:
        self._try_connections()
        for running in jobs:
            self._tasks[running.id] = self._loop.create_task(self._run(running))

    def _try_connections(self) -> None:
        """Have the connections of the ORM's async methods closed that are of no more use.

        All coroutines share them, in one thread of asgiref's, which does this before it does what
        a job asks for that starts now, without a wait here.
        """
        now = time.monotonic()
        if self._try_at <= now:
            self._try_at = now + PROBE_SECONDS
            close = _close_dead if self._tasks else _close_stale
            self._trying = self._loop.create_task(sync_to_async(close)())

    def _cancel(self, job_id: int, reason: str, heard: threading.Event) -> None:
        heard.set()
        found = self._tasks.get(job_id)
        if found is not None:
            found.cancel(reason)

    async def _run(self, running: RunningJob) -> None:
        try:
            outcome = await run_async(running)
        except BaseException as error:  # noqa: BLE001 - a slot would be lost
            outcome = judge(running, None, error)
        finally:
            self._tasks.pop(running.id, None)
        if outcome.failed is not None or _is_error(outcome):
            self._try_at = 0.0  # it may have been for a connection
        self._report(running, outcome)
