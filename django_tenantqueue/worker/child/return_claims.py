"""Giving claims back: those that were not started, and those whose answer never came."""

from __future__ import annotations

import logging
import time
from typing import Any

import psycopg

from ...conf import get_settings
from ...execution.job_log import about_id
from ...execution.outcome import UNKNOWN_CLASS, ends_of_unreturned
from ...models.worker import SILENT
from ...queries import finish as finish_queries
from ...queries.enqueue import wake_any_workers
from .claimed_jobs import ClaimedJobs
from .completions import RETRY_SECONDS, Completions
from .unknown_tasks import UnknownTasks

logger = logging.getLogger("django_tenantqueue")

DOUBT_SECONDS = SILENT.total_seconds() * 3
"""How long after a failed statement a worker looks for claims that it does not know of."""
RETRIABLE = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)


class GiveBack:
    """Returns the jobs that one worker process has claimed and will not run."""

    def __init__(
        self,
        worker_id: int,
        claimed_jobs: ClaimedJobs,
        completions: Completions,
        unknown_tasks: UnknownTasks,
    ) -> None:
        self._worker_id = worker_id
        self._unknown_tasks = unknown_tasks
        self._claimed_jobs = claimed_jobs
        self._completions = completions
        self._next_at = 0.0
        self._doubt_until = 0.0

    @property
    def next_at(self) -> float | None:
        """When the next claims are returned (monotonic time); None without any."""
        return None if self.is_empty else self._next_at

    @property
    def is_empty(self) -> bool:
        """Whether no claim waits to be returned."""
        return not (self._claimed_jobs.to_give_back or self._claimed_jobs.unknown)

    def doubt(self) -> None:
        """Search for unknown claims for some time: a statement has failed."""
        self._doubt_until = time.monotonic() + DOUBT_SECONDS

    def find_lost_claims(self, connection: psycopg.Connection[Any]) -> None:
        """Put back claims that were committed but whose answer was lost: no process runs them."""
        if time.monotonic() >= self._doubt_until:
            return
        held = finish_queries.find_claims(connection, self._worker_id)
        lost = held - self._claimed_jobs.claims() - self._completions.claims()
        for job_id, _ in lost:
            logger.warning(
                "job %s was claimed, but the answer to the claim was lost: the job is returned",
                job_id,
                extra=about_id(job_id),
            )
        self._claimed_jobs.return_claims(lost)

    def run_once(self, connection: psycopg.Connection[Any]) -> None:
        """Return claims; those whose rows are locked are retried."""
        if self._claimed_jobs.unknown:
            self._take_unknown(connection)
        for delay, claims in list(self._claimed_jobs.to_give_back.items()):
            left: list[tuple[int, int]] = []
            try:
                self._return(connection, claims, delay)
            except RETRIABLE:
                left = [c for c in claims if not self._returned_singly(connection, c, delay)]
                self._next_at = time.monotonic() + 5 * RETRY_SECONDS
            if left:
                self._claimed_jobs.to_give_back[delay] = left
            else:
                del self._claimed_jobs.to_give_back[delay]

    def _take_unknown(self, connection: psycopg.Connection[Any]) -> None:
        """Return jobs that this process cannot run: at once if another worker may have the task."""
        runs = self._claimed_jobs.unknown
        try:
            self._unknown_tasks.meet(connection, runs)
        except RETRIABLE:
            self._next_at = time.monotonic() + 5 * RETRY_SECONDS
            return
        for running, outcome in runs:
            if running.task in self._unknown_tasks.left:
                self._claimed_jobs.to_return(running)
            else:
                delay = outcome.give_back or 0.0
                self._claimed_jobs.to_return(running, delay, outcome.reason)
        self._claimed_jobs.unknown = []

    def _returned_singly(
        self, connection: psycopg.Connection[Any], claim: tuple[int, int], delay: float
    ) -> bool:
        try:
            self._return(connection, [claim], delay)
        except RETRIABLE as error:
            logger.warning(
                "job %s: returning it failed, retrying: %s",
                claim[0],
                error,
                extra=about_id(claim[0]),
            )
            return False
        return True

    def _return(
        self, connection: psycopg.Connection[Any], claims: list[tuple[int, int]], delay: float
    ) -> None:
        settings, reasons = get_settings(), self._claimed_jobs.reasons
        returned = finish_queries.return_jobs(
            connection,
            self._worker_id,
            claims,
            delay_seconds=delay,
            errors=reasons,
            max_errors=settings.max_errors,
            ending_class=UNKNOWN_CLASS if settings.unknown_task_timeout else "",
            most_seconds=settings.unknown_task_timeout or 0.0,
        )
        left = (claim for claim in claims if claim[0] not in returned)
        gates = self._claimed_jobs.gates
        for end in ends_of_unreturned(connection, self._worker_id, left, reasons, gates):
            self._completions.add(end)
        for claim in claims:
            reasons.pop(claim, None)
            gates.pop(claim, None)
        if returned and not delay and settings.notify and not settings.pooler:
            wake_any_workers(connection, most=len(returned), worker_id=self._worker_id)
