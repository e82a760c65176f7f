"""A claim loop that sends its jobs to other processes instead of running them.

A sent job stays claimed by this process, `queued`, until another process takes it over. See
docs/explanation/executors.md.
"""

from __future__ import annotations

from typing import Any

import psycopg

from ...execution.current_job import RunningJob
from ...execution.outcome import Outcome
from ...executors import RemoteExecutor
from ...operations.places import DISPATCH_SECONDS
from ...queries import finish as finish_queries
from ..config import WorkerConfig
from .claimed_jobs import ClaimedJobs
from .completions import Completions
from .loop import ClaimLoop
from .running_jobs import RunningJobs


class SentJobs(RunningJobs):
    """Looks after the jobs that one dispatcher has sent and no process has taken over."""

    def __init__(
        self,
        worker_id: int,
        claimed_jobs: ClaimedJobs,
        completions: Completions,
        executor: RemoteExecutor,
    ) -> None:
        super().__init__(worker_id, claimed_jobs, completions)
        self._executor = executor
        self._look_at = 0.0

    @property
    def next_at(self) -> float:
        """When the next check is due (monotonic time)."""
        return self._look_at

    def run_once(self, connection: psycopg.Connection[Any], now: float) -> None:
        """Do what is due."""
        if self._look_at > now:
            return
        self._look_at = now + DISPATCH_SECONDS
        sent = self._claimed_jobs.unfinished()
        ids = [running.id for running in sent]
        ours = {w.id: w for w in finish_queries.watch_jobs(connection, self._worker_id, ids)}
        for running in sent:
            seen = ours.get(running.id)
            if seen is None or seen.claim_seq != running._claimed.claim_seq:
                if self._claimed_jobs.remove(running):
                    self._claimed_jobs.shared_memory.clear(running.id)
                self._executor.taken(running)
            elif seen.cancel:
                self._cancel(running, now)
            elif seen.paused:
                self._claimed_jobs.give_back(running)
        self._executor.resend_late(now)
        for running in self._executor.stuck(now):
            self._claimed_jobs.give_back(running)


class DispatchLoop(ClaimLoop):
    """Claims jobs for one executor, and sends them to it."""

    def __init__(self, executor: RemoteExecutor, config: WorkerConfig, *made: Any) -> None:
        super().__init__(config, *made)
        self.executor = executor
        self.claimed_jobs.threads = self.claimed_jobs.loop = executor
        self.running_jobs: SentJobs = SentJobs(
            self.worker_id, self.claimed_jobs, self.completions, executor
        )
        self._told = ""
        executor.start(self.worker_id, self._give_back)

    def _give_back(self, running: RunningJob) -> None:
        """Return a job that could not be sent; called in any thread."""
        self.report(running, Outcome(give_back=0.0))

    def _may_claim(self) -> bool:
        return self.executor.is_up and super()._may_claim()

    def _duties(self, now: float) -> None:
        error = self.executor.error
        if error:
            self.heartbeat.note_error(error)
        if error != self._told:
            self.heartbeat.hurry()  # the row shows it
        self._told = error
        held = len(self.claimed_jobs)
        super()._duties(now)
        if len(self.claimed_jobs) < held:
            self.next_claim.hurry(now)  # jobs were taken over: there is room for others

    def _rest(self, now: float) -> float:
        # this loop is not woken when messages can be sent again
        rest = super()._rest(now)
        return rest if self.executor.is_up else min(rest, DISPATCH_SECONDS)

    def close(self) -> None:
        """Send no more, and delete this worker's row."""
        self.executor.close()
        super().close()
