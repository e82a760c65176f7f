"""The job that is being run, as its task sees it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ..exceptions import Cancelled, ClaimLost, InvalidArgument
from ..queries.claim import ClaimedJob

_current: ContextVar[RunningJob | None] = ContextVar("tenantqueue_job", default=None)


class RunningJob:
    """What `current_job()` returns inside a task.

    Nothing here talks to the database: progress and statistics are written by the worker a few
    times a second, and with the end of the run.
    """

    __slots__ = (
        "_progress",
        "_stats",
        "cancel_requested",
        "cancel_seen",
        "claimed",
        "claimed_at",
        "dirty",
        "ended",
        "interrupted",
        "lost",
        "on_begin",
        "on_end",
        "pid",
        "queue",
        "recorded",
        "started",
        "tenant",
        "thread_id",
    )

    def __init__(
        self,
        claimed: ClaimedJob,
        *,
        tenant: str = "",
        queue: str = "",
    ) -> None:
        self.claimed = claimed
        self.tenant = tenant
        self.queue = queue
        self.claimed_at = 0.0
        self.started: float | None = None
        self.ended: float | None = None
        self.recorded = False
        self.dirty = False
        self.cancel_requested = False
        self.cancel_seen = 0.0
        self.interrupted = False
        self.lost = False
        self.on_begin: Callable[[], None] | None = None
        self.on_end: Callable[[], None] | None = None
        self.thread_id: int | None = None
        self.pid = 0
        self._progress: dict[str, Any] = {}
        self._stats: dict[str, Any] | None = None

    @property
    def id(self) -> int:
        """The job's id."""
        return self.claimed.id

    @property
    def name(self) -> str:
        """The task's name."""
        return self.claimed.name

    @property
    def attempt(self) -> int:
        """Which start this is, from 1."""
        return self.claimed.attempt

    @property
    def max_attempts(self) -> int:
        """How many starts there may be."""
        return self.claimed.max_attempts

    @property
    def age_seconds(self) -> float:
        """Seconds from the start to now, or to the end."""
        if self.started is None:
            return 0.0
        return max(0.0, (self.ended or time.monotonic()) - self.started)

    @property
    def stats(self) -> dict[str, Any]:
        """Numbers that the task reports (row counts and the like), kept with the job."""
        if self._stats is None:
            self._stats = {}
        self.dirty = True
        return self._stats

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report how far the run is.

        Raises Cancelled when the job's cancellation was asked for, and ClaimLost when this
        run no longer owns the job.
        """
        self.check()
        for name, value in (("done", done), ("total", total)):
            if value is not None and not (
                isinstance(value, int | float) and abs(value) < float("inf")
            ):
                raise InvalidArgument(f"progress({name}={value!r}): it must be a finite number")
        said: dict[str, Any] = {"done": float(done)}
        if total is not None:
            said["total"] = float(total)
        if message is not None:
            said["message"] = str(message)  # here, where its error is one of the task's
        self._progress = {**self._progress, **said}
        self.dirty = True

    def check(self) -> None:
        """Raise Cancelled or ClaimLost when the run should stop; for tasks with loops."""
        if self.lost:
            raise ClaimLost(f"job {self.id} was taken from this run")
        if self.cancel_requested:
            raise Cancelled(f"the cancellation of job {self.id} was requested")

    def said(self) -> dict[str, Any]:
        """Return progress and statistics as keys of `extra`."""
        if self._stats:
            return {**self._progress, "stats": self._stats}
        return self._progress


def running_or_none() -> RunningJob | None:
    """Return the job that runs in this thread or coroutine, or None."""
    return _current.get()


def current_job() -> RunningJob:
    """Return the job that runs in this thread or coroutine; raise LookupError outside one."""
    running = _current.get()
    if running is None:
        raise LookupError(
            "no job runs here: current_job() works inside a task (not in threads it starts)"
        )
    return running


def enter(running: RunningJob) -> None:
    """Make `running` the current job of this context and note its start."""
    running.thread_id = threading.get_ident()
    running.pid = os.getpid()
    running.started = time.monotonic()
    if running.on_begin is not None:
        running.on_begin()
    _current.set(running)


def leave() -> None:
    """Leave the current job."""
    running = _current.get()
    if running is not None and running.on_end is not None:
        running.on_end()
    _current.set(None)


def end_forked_copy(running: RunningJob) -> None:
    """End this process when the job has forked it: the job goes on in the original alone.

    It ends without any clean-up: its connections are those of the original. Its locks, those of the
    log among them, may be held by threads that it does not have.
    """
    if os.getpid() != running.pid:
        os.write(
            2,
            f"job {running.id} forked this process, {os.getpid()}, from worker process "
            f"{running.pid} and returned in both: this one ends\n".encode(),
        )
        os._exit(70)
