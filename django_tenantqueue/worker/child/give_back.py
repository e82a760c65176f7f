"""Giving claims back: those that were not begun, and those whose answer never came."""

from __future__ import annotations

import logging
import time
from typing import Any

import psycopg

from ...conf import get_settings
from ...queries import finish as finish_queries
from ...queries.enqueue import wake_any_workers
from .claimed_jobs import ClaimedJobs
from .completions import Completions

logger = logging.getLogger("django_tenantqueue")

DOUBT_SECONDS = 90.0
"""How long after a failed statement a worker looks for claims of which it has had no answer: longer
than the server may go on with a statement whose connection is lost."""
RETURN_SECONDS = 0.5
"""Wait before a job is given back again whose row somebody had locked."""
RETRIABLE = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)


class GiveBack:
    """Gives back what one worker process has claimed and will not run."""

    def __init__(self, worker_id: int, claimed_jobs: ClaimedJobs, completions: Completions) -> None:
        self._worker_id = worker_id
        self._claimed_jobs = claimed_jobs
        self._completions = completions
        self._next_at = 0.0
        self._doubt_until = 0.0

    @property
    def next_at(self) -> float | None:
        """When something is to be given back (monotonic time); None when there is nothing."""
        return self._next_at if self._claimed_jobs.to_give_back else None

    def doubt(self) -> None:
        """Look for unknown claims for a while: a statement has failed."""
        self._doubt_until = time.monotonic() + DOUBT_SECONDS

    def find_unknown(self, connection: psycopg.Connection[Any]) -> None:
        """Note claims that were committed but whose answer never came: nobody runs them."""
        if time.monotonic() >= self._doubt_until:
            return
        held = finish_queries.find_claims(connection, self._worker_id)
        for claim in held - self._claimed_jobs.claims() - self._completions.claims():
            logger.warning(
                "job %s was claimed in a transaction without answer: given back", claim[0]
            )
            self._claimed_jobs.to_give_back.setdefault(0.0, []).append(claim)

    def run_once(self, connection: psycopg.Connection[Any]) -> None:
        """Give claims back; those whose rows somebody has locked are left for a later round."""
        for delay, claims in list(self._claimed_jobs.to_give_back.items()):
            try:
                self._return(connection, claims, delay)
                del self._claimed_jobs.to_give_back[delay]
            except RETRIABLE:
                left = [c for c in claims if not self._returned_singly(connection, c, delay)]
                self._claimed_jobs.to_give_back[delay] = left
                if not left:
                    del self._claimed_jobs.to_give_back[delay]
                self._next_at = time.monotonic() + RETURN_SECONDS

    def _returned_singly(
        self, connection: psycopg.Connection[Any], claim: tuple[int, int], delay: float
    ) -> bool:
        try:
            self._return(connection, [claim], delay)
        except RETRIABLE as error:
            logger.warning("job %s is given back later: %s", claim[0], error)
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
        )
        for claim in claims:
            reasons.pop(claim, None)
        if returned and not delay and settings.notify and not settings.pooler:
            wake_any_workers(connection, most=len(returned), worker_id=self._worker_id)
