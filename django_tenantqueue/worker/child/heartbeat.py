"""A worker process's heartbeats, with its load, memory and last error, and its limits of age."""

from __future__ import annotations

import logging
import os
import time

import psycopg

from ...models.worker import HEARTBEAT_SECONDS
from ...queries import workers as queries
from ...status.clock import clock_text
from ...status.thresholds import CLOCK_SECONDS
from ...text import clean_text, number_of
from ..memory import rss_bytes
from .figures import Figures

logger = logging.getLogger("django_tenantqueue")


class Disowned(Exception):
    """This process was taken for dead and its jobs were rescued, so it must end at once."""


class Heartbeat:
    """Counts the claims and jobs of one worker process and reports them."""

    def __init__(
        self, worker_id: int, *, max_jobs: int | None = None, max_rss: int | None = None
    ) -> None:
        self.next_at = 0.0
        """When the next heartbeat is due (monotonic time)."""
        self.figures = Figures()
        self.has_unknown = False
        """Some worker lacks tasks, as of the last heartbeat."""
        self._worker_id = worker_id
        self._max_jobs = max_jobs
        self._max_rss = max_rss
        self._jobs = 0
        self._claims = 0
        self._measure_at = 0.0
        self._error: str | None = None
        self._clock_ahead = 0.0
        self._told = (time.monotonic(), 0, 0)

    def count_claim(self) -> None:
        """Count a claim."""
        self._claims += 1

    def count_job(self) -> None:
        """Count a job that has ended."""
        self._jobs += 1

    def note_error(self, text: str) -> None:
        """Report an error of this process with the next heartbeat."""
        self._error = clean_text(text.strip(), 1000)

    @property
    def has_error(self) -> bool:
        """Whether an error waits for the next heartbeat."""
        return self._error is not None

    def hurry(self) -> None:
        """Make the next heartbeat due now."""
        self.next_at = 0.0

    def beat(self, connection: psycopg.Connection[object], now: float, running: int) -> bool:
        """Write a heartbeat; return whether an operator wants this worker to drain.

        Raises Disowned.
        """
        self.next_at = now + HEARTBEAT_SECONDS
        since, claims, jobs = self._told
        seconds = max(now - since, 0.001)
        answer = queries.heartbeat_worker(
            connection,
            self._worker_id,
            jobs_running=running,
            rss_bytes=rss_bytes(os.getpid()),
            claims_per_second=round((self._claims - claims) / seconds, 1),
            jobs_per_second=round((self._jobs - jobs) / seconds, 1),
            error=self._error,
            clock_ahead=round(self._clock_ahead, 3),
        )
        self._error = None
        self._told = (now, self._claims, self._jobs)
        if answer is None:
            raise Disowned(f"the row of worker {self._worker_id} is gone: it was taken for dead")
        self._take_clock(answer.clock_ahead)
        self.has_unknown = answer.has_unknown
        return answer.drain

    def _take_clock(self, ahead: float) -> None:
        """Note how far this machine's clock is ahead; warn when it begins to be wrong."""
        was_wrong, is_wrong = (abs(value) > CLOCK_SECONDS for value in (self._clock_ahead, ahead))
        self._clock_ahead = ahead
        if was_wrong != is_wrong:
            self.hurry()  # the row shows it
        if is_wrong and not was_wrong:
            logger.warning("%s", clock_text(ahead))

    def age_limit(self, now: float) -> str | None:
        """Return why this process should be replaced; None while it need not be."""
        if self._max_jobs is not None and self._jobs >= self._max_jobs:
            return f"it has run {number_of('job', self._jobs)}"
        if self._max_rss is not None and now >= self._measure_at:
            self._measure_at = now + HEARTBEAT_SECONDS / 100  # also while jobs end all the time
            taken = rss_bytes(os.getpid())
            if taken is not None and taken > self._max_rss:
                return f"it takes {taken >> 20} MB"
        return None
