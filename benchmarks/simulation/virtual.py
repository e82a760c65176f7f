"""A virtual worker: the package's own claim loop, and jobs that only let their time pass.

The loop decides by itself when it claims, what it asks for and when it sleeps. It shares the
connection of its desk with others, so it runs one statement at a time with them.
"""

from __future__ import annotations

import heapq
import itertools
import json
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from django_tenantqueue.calls import sources
from django_tenantqueue.exceptions import TenantQueueError, UnknownTask
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.outcome import Outcome, judge, success
from django_tenantqueue.queries import workers as worker_queries
from django_tenantqueue.worker.child import unknown_tasks
from django_tenantqueue.worker.child.loop import ClaimLoop
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.connection import WorkerConnection

from .messages import Run, Trip

NEVER = float("inf")
"""When nothing is due (monotonic time)."""
THREADS = 1
KNOWN = ({"simulation.work"}, {"simulation.work"}, {"simulation.work", "simulation.news"})
"""The tasks of the workers before the first deploy, after it, and after the second."""
_known: set[str] = KNOWN[0]
"""Those of the worker whose turn it is."""


def use_virtual_tasks() -> None:
    """Let the worker whose turn it is decide which tasks this process has."""
    for module in (sources, unknown_tasks):
        setattr(module, "known_names", lambda: _known)  # noqa: B010


class Waiter:
    """Takes the place of the pipe that wakes a claim loop: its desk wakes it."""

    def wake(self) -> None:
        """Do nothing."""


class Loop(ClaimLoop):
    """A claim loop on a shared connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.waiter.close()
        self.waiter = Waiter()  # type: ignore[assignment]
        self.trips: list[Trip] = []
        """Claims since the last report."""
        self._exchange = self.round_trip.exchange
        self.round_trip.exchange = self._metered_exchange  # type: ignore[method-assign]

    def _metered_exchange(self, connection: Any, *, claim: bool) -> bool:
        before, began = len(self.claimed_jobs), time.monotonic()
        answered = self._exchange(connection, claim=claim)
        if claim:
            taken = len(self.claimed_jobs) - before
            self.trips.append(Trip(time.monotonic() - began, taken))
        return answered

    def _attend_notifications(self) -> None:
        """The desk hears them for all its workers."""

    def close(self) -> None:
        """Sign off, as the loop of a real worker does, but leave the connection open."""
        self._store_figures()
        self.next_claim.sleep.retire(self.connection)
        worker_queries.delete_worker(self.connection, self.worker_id)


class Places:
    """The executor of a virtual worker. A job stays in its place for its own time."""

    def __init__(self, size: int, report: Callable[[RunningJob, Outcome], None]) -> None:
        self.runs: list[Run] = []
        """Runs that ended since the last report."""
        self.waits: list[float] = []
        """Waits of first attempts of small tenants that began since then."""
        self._free = size
        self._report = report
        self._waiting: deque[RunningJob] = deque()
        self._running: list[tuple[float, int, RunningJob]] = []
        self._numbers = itertools.count()

    @property
    def next_at(self) -> float:
        """When the next job ends."""
        return self._running[0][0] if self._running else NEVER

    @property
    def held(self) -> list[RunningJob]:
        """The jobs that are here."""
        return [*self._waiting, *(running for _, _, running in self._running)]

    def submit(self, jobs: list[RunningJob]) -> None:
        """Take jobs, and begin those that find a place."""
        self._waiting += jobs
        self._begin()

    def revoke(self, running: RunningJob) -> bool:
        """Take back a job that was not begun; False when it is too late."""
        if running._started is not None:
            return False
        self._waiting.remove(running)
        return True

    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        """Let it be: no job here has a time limit."""

    def turn(self) -> None:
        """End what is due, and begin the next ones."""
        now = time.monotonic()
        while self._running and self._running[0][0] <= now:
            at, _, running = heapq.heappop(self._running)
            running._ended = max(at, running._started or at)
            self._free += 1
            self.note(running, running._ended)
            self._report(running, Outcome(finished=success(running, None)))
        self._begin()

    def note(self, running: RunningJob, end: float, *, killed: bool = False) -> None:
        """Keep a run for the check of slots and starts."""
        job = running._claimed
        assert running._started is not None
        self.runs.append(
            Run(job.id, job.queue_id, job.attempt, running._started, end, is_killed=killed)
        )

    def _begin(self) -> None:
        while self._waiting and self._free:
            running = self._waiting.popleft()
            job = running._claimed
            if job.task not in _known:
                running._started = running._ended = time.monotonic()
                error = UnknownTask(f"no task is named {job.task!r} here", name=job.task)
                self._report(running, judge(running, None, error))
                continue
            running._started = time.monotonic()
            if running._on_begin is not None:
                running._on_begin()
            seconds, is_small = json.loads(job.args)["args"]
            if is_small and job.attempt == 1:
                self.waits.append(job.waited_seconds)
            self._free -= 1
            due = running._started + seconds
            heapq.heappush(self._running, (due, next(self._numbers), running))


class VirtualWorker:
    """One worker of one version of the code."""

    def __init__(
        self,
        described: worker_queries.NewWorker,
        worker_id: int,
        version: int,
        connection: WorkerConnection,
    ) -> None:
        self.id = worker_id
        self.version = version
        self.due_at = 0.0
        """When its next turn is due, as far as its desk knows."""

        def never() -> WorkerConnection:
            raise RuntimeError("the connection of a desk was lost")

        config = WorkerConfig(
            "default", described.name, threads=THREADS, async_slots=described.async_slots
        )
        self.loop = Loop(config, worker_id, connection, never)
        self.places = Places(THREADS, self.loop.report)
        self.loop.claimed_jobs.threads = self.places  # type: ignore[assignment]
        self.loop.claimed_jobs.loop = Places(config.async_slots, self.loop.report)  # type: ignore[assignment]

    def turn(self) -> float | None:
        """Do what is due; return when it is due again, None: it has drained and signed off."""
        global _known
        _known = KNOWN[self.version]
        self.places.turn()
        pause = self.loop.run_once()
        if self.loop.claimed_jobs.draining and self.loop.drained():
            self.loop.abandon()
            self.loop.close()
            return None
        return min(time.monotonic() + pause, self.places.next_at)

    def die(self) -> list[int]:
        """Return the jobs that it takes along."""
        now = time.monotonic()
        for running in self.places.held:
            if running._started is not None:
                self.places.note(running, now, killed=True)
        return [running.id for running in self.loop.claimed_jobs._jobs.values()]
