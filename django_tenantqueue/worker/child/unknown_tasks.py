"""The tasks of jobs that this process does not have, for example during a rolling deployment."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from typing import Any

import psycopg

from ...batch_sizes import BATCH
from ...calls.sources import has_task, known_names, lacks_task
from ...execution.current_job import RunningJob
from ...execution.job_log import about
from ...execution.outcome import UNKNOWN_CLASS, UNKNOWN_DELAY, Outcome
from ...models.worker import SILENT
from ...queries.workers import hurry_unknown, share_unknown_tasks

logger = logging.getLogger("django_tenantqueue")

MOST_UNKNOWN = 200
"""Most tasks and most jobs that a worker remembers. A claim compares each job that it reads."""


MOST_HURRIED = BATCH * 10
"""Most scheduled jobs that a worker looks through when it starts."""
FORGET_SECONDS = 3600.0
"""How long a worker remembers a task that it lacks after it learned of it."""


class UnknownTasks:
    """Which tasks this process lacks, and which of them other workers may have.

    Workers tell each other in their rows. Jobs of a task that all of them lack are not left: they
    are claimed, returned and claimed again, so they do not block the jobs behind them.
    """

    def __init__(self, worker_id: int) -> None:
        self.left: list[str] = []
        """Tasks whose jobs are left to other workers."""
        self.left_jobs: list[int] = []
        """Jobs left to other workers for a while, because their arguments did not fit."""
        self.has_started = False
        self._worker_id = worker_id
        self._names: dict[str, float] = {}
        """Tasks that it lacks -> when it learned of them last (monotonic time)."""
        self._forgotten: set[str] = set()
        """Names that are learned again only from jobs."""
        self._left_until: dict[int, float] = {}
        self._logged: set[str] = set()

    def start(self, connection: psycopg.Connection[Any]) -> None:
        """Take over what other workers lack, and hurry jobs that have waited for this code."""
        self.share(connection)
        hurry_unknown(
            connection,
            sorted(known_names()),
            error_class=UNKNOWN_CLASS,
            seconds=UNKNOWN_DELAY,
            most=MOST_HURRIED,
        )
        self.has_started = True

    def meet(
        self, connection: psycopg.Connection[Any], runs: Iterable[tuple[RunningJob, Outcome]]
    ) -> None:
        """Learn from jobs that this process could not run; log each of their tasks once."""
        now = time.monotonic()
        for running, outcome in runs:
            claimed = running._claimed
            if lacks_task(claimed.source_type, claimed.source_method):
                self._names.pop(running.task, None)
                self._names[running.task] = now
            else:
                self._left_until[running.id] = now + UNKNOWN_DELAY
            if running.task not in self._logged:
                self._logged.add(running.task)
                logger.warning(
                    "this worker cannot run job %s, so it returns this and other jobs of %r: %s",
                    running.id,
                    running.task,
                    json.loads(outcome.reason or "{}").get("message"),
                    extra=about(running),
                )
        self.forget_jobs()
        self.share(connection)

    def forget_jobs(self) -> None:
        """Claim jobs again that were left to others for long enough."""
        now = time.monotonic()
        for job_id, until in list(self._left_until.items()):
            if until <= now or len(self._left_until) > MOST_UNKNOWN:
                del self._left_until[job_id]
        self.left_jobs[:] = self._left_until

    def share(self, connection: psycopg.Connection[Any]) -> None:
        """Tell other workers what this one lacks, and learn what they lack."""
        now, learned = time.monotonic(), True
        self._forget_names(now)
        while learned:
            found = share_unknown_tasks(
                connection,
                self._worker_id,
                list(self._names),
                silent_seconds=SILENT.total_seconds(),
            )
            new = found.keys() - self._names.keys() - self._forgotten
            room = MOST_UNKNOWN - len(self._names)
            missing = [name for name in sorted(new) if not has_task(name)][:room]
            self._names.update(dict.fromkeys(missing, now))
            learned = bool(missing)
        self.left[:] = [name for name in self._names if found.get(name)]

    def _forget_names(self, now: float) -> None:
        """Forget names that no job has had for long, else workers would pass them on for ever."""
        for name, at in list(self._names.items()):
            if at < now - FORGET_SECONDS or len(self._names) > MOST_UNKNOWN or has_task(name):
                del self._names[name]
                self._forgotten.add(name)
        if len(self._forgotten) > MOST_UNKNOWN * 5:
            self._forgotten.clear()
