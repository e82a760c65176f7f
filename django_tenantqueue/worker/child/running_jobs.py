"""Looks after running jobs: writes starts and progress, notices cancellations, enforces limits."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import psycopg

from ...conf import get_settings
from ...exceptions import Cancelled, TimeLimitExceeded
from ...execution.current_job import RunningJob
from ...execution.job_log import about, about_id
from ...execution.outcome import CANCELLED_UNSTARTED, ended
from ...queries import finish as finish_queries
from ...queries.finish import RunRecord, Watched
from ...states import State
from .claim_ahead import AHEAD_SECONDS, MOST_AHEAD_SECONDS
from .claimed_jobs import ClaimedJobs
from .completions import Completions
from .return_claims import RETRIABLE

logger = logging.getLogger("django_tenantqueue")

RECORD_SECONDS = 0.2
"""Time between two writes of starts and progress."""
WATCH_SECONDS = 0.5
"""Time between two checks for cancelled, paused or lost jobs. The first check of a job is at least
RECORD_SECONDS after its claim."""
STALE_SECONDS = MOST_AHEAD_SECONDS + AHEAD_SECONDS
"""Age at which a job claimed ahead is returned if no thread has started it."""


class RunningJobs:
    """Looks after the claimed jobs of one worker process."""

    def __init__(self, worker_id: int, claimed_jobs: ClaimedJobs, completions: Completions) -> None:
        now = time.monotonic()
        self._worker_id = worker_id
        self._claimed_jobs = claimed_jobs
        self._completions = completions
        self._record_at = now + RECORD_SECONDS
        self._watch_at = now + WATCH_SECONDS

    @property
    def next_at(self) -> float:
        """When the next check is due (monotonic time)."""
        return min(self._record_at, self._watch_at)

    def run_once(self, connection: psycopg.Connection[Any], now: float) -> None:
        """Do what is due."""
        if self._record_at <= now:
            self._record_at = now + RECORD_SECONDS
            self._record(connection)
        if self._watch_at <= now:
            self._watch_at = now + WATCH_SECONDS
            self._look(connection, now)

    def _record(self, connection: psycopg.Connection[Any]) -> None:
        """Write true starts and progress of jobs that have run for some time.

        A failed write, because of a locked row for example, is retried.
        """
        found = sorted(self._new_records(), key=lambda pair: pair[1].id)
        if not found:
            return
        written: set[int] = set()
        try:
            written = self._write(connection, [record for _, record in found])
        except RETRIABLE as error:
            logger.info("writing starts and progress of jobs failed, retrying: %s", error)
        finally:
            for running, record in found:
                if record.id in written:
                    running._recorded = True
                else:
                    running._dirty = True

    def _write(self, connection: psycopg.Connection[Any], records: list[RunRecord]) -> set[int]:
        """Write records; return the ids that are done."""
        try:
            return finish_queries.record_runs(connection, self._worker_id, records)
        except psycopg.DataError:
            return {r.id for r in records if self._is_written_singly(connection, r)}

    def _new_records(self) -> Iterable[tuple[RunningJob, RunRecord]]:
        for running in self._claimed_jobs.running():
            if running.age_seconds < RECORD_SECONDS or (running._recorded and not running._dirty):
                continue
            running._dirty = False  # before it is read: later changes are written next time
            said = running._said()
            claimed = running._claimed
            extra = _encode(said)
            yield running, RunRecord(claimed.id, claimed.claim_seq, running.age_seconds, extra)

    def _is_written_singly(self, connection: psycopg.Connection[Any], record: RunRecord) -> bool:
        try:
            return bool(finish_queries.record_runs(connection, self._worker_id, [record]))
        except psycopg.DataError as error:
            logger.warning(
                "job %s: storing its progress failed: %s",
                record.id,
                error,
                extra=about_id(record.id),
            )
        record = replace(record, extra=None)
        return bool(finish_queries.record_runs(connection, self._worker_id, [record]))

    def _look(self, connection: psycopg.Connection[Any], now: float) -> None:
        self._stop_overdue()
        old = now - RECORD_SECONDS  # most jobs are short, and end before they are looked at
        watched = [run for run in self._claimed_jobs.unfinished() if run._claimed_at < old]
        if not watched:
            return
        ids = [running.id for running in watched]
        standing = {w.id: w for w in finish_queries.watch_jobs(connection, self._worker_id, ids)}
        for running in watched:
            self._judge(running, standing.get(running.id), now)

    def _judge(self, running: RunningJob, seen: Watched | None, now: float) -> None:
        if running._ended is not None:
            return
        if seen is None or seen.claim_seq != running._claimed.claim_seq:
            if not running.lost:
                logger.warning(
                    "job %s (%s): the claim was lost",
                    running.id,
                    running.task,
                    extra=about(running),
                )
                running.lost = True
            return
        if seen.cancel:
            self._cancel(running, now)
        elif running._started is None and (
            seen.paused or now - running._claimed_at > STALE_SECONDS
        ):
            self._claimed_jobs.give_back(running)

    def _stop_overdue(self) -> None:
        """Stop the jobs that have passed their time limits; needs no database."""
        for running in self._claimed_jobs.running():
            limit = running._claimed.timeout_seconds
            if limit is not None and running.age_seconds > limit:
                self._claimed_jobs.interrupt(running, TimeLimitExceeded)

    def _cancel(self, running: RunningJob, now: float) -> None:
        if not running.cancel_requested:
            running.cancel_requested = True
            running._cancel_seen = now
        if running._started is None and self._claimed_jobs.take_back(running):
            error = Cancelled(CANCELLED_UNSTARTED)
            self._completions.add(ended(running, State.CANCELLED, error))
        elif now - running._cancel_seen >= get_settings().cancel_grace:
            self._claimed_jobs.interrupt(running, Cancelled)


def _encode(said: dict[str, Any]) -> str | None:
    """Return progress and statistics as JSON text, without values that cannot be stored.

    Those are rejected at the end of the run, when they are reported again.
    """
    if not said:
        return None
    try:
        text = json.dumps(said, allow_nan=False)
        if "stats" in said and len(text) > get_settings().max_result_bytes:
            text = json.dumps({name: said[name] for name in said if name != "stats"})
    except BaseException:  # noqa: BLE001 - statistics are objects of users' code
        return None
    return text
