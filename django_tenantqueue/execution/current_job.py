"""The running job, as its task sees it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from ..calls import other_systems
from ..exceptions import Cancelled, ClaimLost, InvalidArgument
from ..models import Job
from ..queries.claim import ClaimedJob
from ..queries.follow_ups import PreviousResult
from ..queries.monitor_summary import JobMonitor
from .job_monitor import MonitorSummary, monitor_of, summary_of
from .previous_job import previous_of

_current: ContextVar[RunningJob | None] = ContextVar("tenantqueue_job", default=None)


class RunningJob:
    """The running job, from `current_job()` inside a task.

    The worker writes progress and statistics a few times a second, and at the end of the run. The
    first access to `monitor`, `summary` or `previous` reads the database. Nothing else does.
    """

    __slots__ = (
        "_cancel_seen",
        "_claimed",
        "_claimed_at",
        "_counted",
        "_dirty",
        "_ended",
        "_interrupted",
        "_monitor",
        "_on_begin",
        "_on_end",
        "_pid",
        "_previous",
        "_previous_result",
        "_progress",
        "_recorded",
        "_started",
        "_stats",
        "_summary",
        "_thread_id",
        "cancel_requested",
        "lost",
        "queue",
        "tenant",
    )

    def __init__(
        self,
        claimed: ClaimedJob,
        *,
        tenant: str = "",
        queue: str = "",
    ) -> None:
        self._claimed = claimed
        self.tenant = tenant
        self.queue = queue
        self._claimed_at = 0.0
        self._started: float | None = None
        self._ended: float | None = None
        self._recorded = False
        self._counted = False
        """Whether its start was counted in the figures."""
        self._dirty = False
        self.cancel_requested = False
        self._cancel_seen = 0.0
        self._interrupted = False
        self.lost = False
        self._on_begin: Callable[[], None] | None = None
        self._on_end: Callable[[], None] | None = None
        self._thread_id: int | None = None
        self._pid = 0
        self._progress: dict[str, Any] = {}
        self._stats: dict[str, Any] | None = None
        # empty until it was asked for
        self._monitor: tuple[JobMonitor | None] | tuple[()] = ()
        self._summary: tuple[MonitorSummary | None] | tuple[()] = ()
        self._previous: tuple[Job | None] | tuple[()] = ()
        self._previous_result: PreviousResult | None = None

    if not TYPE_CHECKING:  # else every attribute would exist

        def __getattr__(self, name):
            """Name the counterpart of an attribute that running tasks of other systems have."""
            raise other_systems.unknown_attribute(self, name, other_systems.RUNNING)

    @property
    def id(self) -> int:
        """The job's id."""
        return self._claimed.id

    @property
    def task(self) -> str:
        """The task's name."""
        return self._claimed.task

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1."""
        return self._claimed.attempt

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts."""
        return self._claimed.max_attempts

    @property
    def age_seconds(self) -> float:
        """Seconds since the start; of an ended run, its duration."""
        if self._started is None:
            return 0.0
        return max(0.0, (self._ended or time.monotonic()) - self._started)

    @property
    def stats(self) -> dict[str, Any]:
        """A dict of numbers that the task reports, such as row counts; stored with the job."""
        if self._stats is None:
            self._stats = {}
        self._dirty = True
        return self._stats

    @property
    def monitor(self) -> JobMonitor | None:
        """The monitor that the job is a detail or the callback of; None for other jobs.

        It is read from the database once. Coroutines use amonitor().
        """
        if not self._monitor:
            self._monitor = (monitor_of(self.id),)
        return self._monitor[0]

    async def amonitor(self) -> JobMonitor | None:
        """See monitor."""
        return await sync_to_async(lambda: self.monitor)()

    @property
    def summary(self) -> MonitorSummary | None:
        """The results of the monitor's details, for its callback; None for other jobs.

        It is read from the database once. Coroutines use asummary().
        """
        if not self._summary:
            found = self.monitor
            self._summary = (summary_of(found.id) if found and found.is_callback else None,)
        return self._summary[0]

    async def asummary(self) -> MonitorSummary | None:
        """See summary."""
        return await sync_to_async(lambda: self.summary)()

    @property
    def previous(self) -> Job | None:
        """The finished job whose `on_success` or `on_end` enqueued this one; None for other jobs.

        It is read from the database once. Coroutines use aprevious().
        """
        if not self._previous:
            self._previous = (previous_of(self.id),)
        return self._previous[0]

    async def aprevious(self) -> Job | None:
        """See previous."""
        return await sync_to_async(lambda: self.previous)()

    def _tell(self, previous: Job | None, summary: MonitorSummary | None) -> None:
        """Set what is otherwise read from the database: eager mode stores no job."""
        self._previous = (previous,)
        self._summary = (summary,)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress: `done` of `total`, in any unit, and a message.

        Raises Cancelled when the job's cancellation was requested, ClaimLost when this run no
        longer owns the job, and InvalidArgument for a number that is not finite.
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
        self._dirty = True

    def check(self) -> None:
        """Raise Cancelled or ClaimLost if the run should stop. Call it in loops."""
        if self.lost:
            raise ClaimLost(
                f"job {self.id} was taken from this run: another run may have it. End this one"
            )
        if self.cancel_requested:
            raise Cancelled(f"the cancellation of job {self.id} was requested: end this run")

    def _said(self) -> dict[str, Any]:
        """Return the progress and statistics to store with the job."""
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
            "no job runs here: current_job() works inside a task that runs as a job, not in "
            "threads that it starts, nor where the task is called as a function; in tests use "
            "run_pending() or eager() of django_tenantqueue.testing"
        )
    return running


def enter(running: RunningJob) -> None:
    """Make `running` the current job of this context and note its start."""
    running._thread_id = threading.get_ident()
    running._pid = os.getpid()
    running._started = time.monotonic()
    if running._on_begin is not None:
        running._on_begin()
    _current.set(running)


def leave() -> None:
    """Leave the current job."""
    running = _current.get()
    if running is not None and running._on_end is not None:
        running._on_end()
    _current.set(None)


def end_forked_copy(running: RunningJob) -> None:
    """Exit if the job forked this process: the job continues in the original only.

    It exits without clean-up: its connections belong to the original. Threads that it does not
    have may hold its locks, such as those of the log.
    """
    if os.getpid() != running._pid:
        os.write(
            2,
            f"job {running.id} forked this process, {os.getpid()}, from worker process "
            f"{running._pid} and returned in both: this one ends\n".encode(),
        )
        os._exit(70)
