"""The jobs that this process has claimed and not ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from functools import partial

from ...conf import get_settings
from ...exceptions import Cancelled, TenantQueueError
from ...execution.current_job import RunningJob
from ...execution.job_log import about
from ...execution.outcome import Outcome
from ...executors import Executor, hard_limit
from ..shared_memory import SharedMemory, Why
from .claim_ahead import MOST_AHEAD, ClaimAhead

logger = logging.getLogger("django_tenantqueue")


class ClaimedJobs:
    """The claimed jobs of one worker process.

    Only the claim loop's thread changes them; executors mark what they begin and end.
    """

    def __init__(
        self, threads: int, async_slots: int, shared_memory: SharedMemory | None = None
    ) -> None:
        self.shared_memory = shared_memory or SharedMemory(threads + MOST_AHEAD + async_slots)
        self.claim_ahead = ClaimAhead(threads)
        self.threads: Executor
        """Runs blocking jobs. It is set before the first round, as is `loop`, for coroutines."""
        self.loop: Executor
        self.draining = False
        """No more jobs are claimed."""
        self.to_give_back: dict[float, list[tuple[int, int]]] = {}
        """Delay in seconds -> claims (id, claim_seq) to return."""
        self.reasons: dict[tuple[int, int], str] = {}
        """Returned claim -> JSON text of the error that is the reason."""
        self.gates: dict[tuple[int, int], str | None] = {}
        """Claim to return -> the gates that its job has passed."""
        self.unknown: list[tuple[RunningJob, Outcome]] = []
        """Runs that ended because this process could not run their jobs, to return."""
        self._thread_slots = threads
        self._async_slots = async_slots
        self._jobs: dict[int, RunningJob] = {}
        self._threaded = 0
        self._coroutines = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def room(self) -> tuple[int, int]:
        """Return how many more blocking jobs and coroutines there is room for."""
        if self.draining:
            return 0, 0
        return (
            max(0, self._thread_slots + self.claim_ahead.ahead - self._threaded),
            max(0, self._async_slots - self._coroutines),
        )

    def free_threads(self) -> int:
        """Return how many threads have nothing to do."""
        return max(0, self._thread_slots - self._threaded)

    def hand_out(self, jobs: Iterable[RunningJob]) -> None:
        """Give claimed jobs to the executor of their kind, in this order."""
        now = time.monotonic()
        blocking: list[RunningJob] = []
        coroutines: list[RunningJob] = []
        for running in jobs:
            running._claimed_at = now
            place = self.shared_memory.reserve(running.id)
            limit = hard_limit(running)
            running._on_begin = partial(self.shared_memory.begin, place, running.id, limit)
            running._on_end = partial(self.shared_memory.end, place)
            self._jobs[running.id] = running
            (coroutines if running._claimed.is_async else blocking).append(running)
        self._threaded += len(blocking)
        self._coroutines += len(coroutines)
        for executor, part in ((self.threads, blocking), (self.loop, coroutines)):
            if part:
                executor.submit(part)

    def remove(self, running: RunningJob) -> bool:
        """Remove a job that has ended; False when it was taken back before."""
        if self._jobs.get(running.id) is not running:
            return False  # it may have been claimed again since
        del self._jobs[running.id]
        self._count_out(running)
        if not running._claimed.is_async and running._started is not None:
            self.claim_ahead.observe(running.age_seconds)
        return True

    def _count_out(self, running: RunningJob) -> None:
        if running._claimed.is_async:
            self._coroutines -= 1
        else:
            self._threaded -= 1

    def running(self) -> list[RunningJob]:
        """Return the jobs that run now."""
        return [r for r in self._jobs.values() if r._started is not None and r._ended is None]

    def unfinished(self) -> list[RunningJob]:
        """Return the jobs that run or wait for a thread."""
        return [r for r in self._jobs.values() if r._ended is None]

    def claims(self) -> set[tuple[int, int]]:
        """Return the claims (id, claim_seq) of the claimed jobs and of those to return."""
        returned = {claim for claims in self.to_give_back.values() for claim in claims}
        runs = (*self._jobs.values(), *(running for running, _ in self.unknown))
        return returned | {(r.id, r._claimed.claim_seq) for r in runs}

    def _executor_of(self, running: RunningJob) -> Executor:
        return self.loop if running._claimed.is_async else self.threads

    def take_back(self, running: RunningJob) -> bool:
        """Take a job back from its executor; False when it has started."""
        if not self._executor_of(running).revoke(running):
            return False
        if self._jobs.pop(running.id, None) is not None:
            self._count_out(running)
            self.shared_memory.clear(running.id)
        return True

    def give_back(self, running: RunningJob) -> None:
        """Return a job to its queue, unless it has started."""
        if self.take_back(running):
            self.claim_ahead.stalled()
            self.to_return(running)

    def return_claims(
        self,
        claims: Iterable[tuple[int, int]],
        delay_seconds: float = 0.0,
        reason: str | None = None,
    ) -> None:
        """Return claims (id, claim_seq) to their queues soon, with the error that is the reason."""
        for claim in claims:
            self.to_give_back.setdefault(delay_seconds, []).append(claim)
            if reason is not None:
                self.reasons[claim] = reason

    def to_return(
        self, running: RunningJob, delay_seconds: float = 0.0, reason: str | None = None
    ) -> None:
        """Return the claim of a job to its queue soon, with the error that is the reason."""
        claim = (running.id, running._claimed.claim_seq)
        self.gates[claim] = running._claimed.gates
        self.return_claims([claim], delay_seconds, reason)

    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        """Interrupt a running job once; again if Python ignored it (`repeat_interruption`)."""
        if running._interrupted:
            return
        running._interrupted = True
        logger.warning(
            "job %s (%s) is interrupted: %s",
            running.id,
            running.task,
            error.__name__,
            extra=about(running),
        )
        self._executor_of(running).interrupt(running, error)
        grace = get_settings().hard_timeout_grace
        if error is Cancelled and grace is not None:
            self.shared_memory.limit(running.id, grace, Why.CANCEL)
