"""One round trip of the claim loop: store what has ended, claim, and pass on what came back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from ...conf import get_settings
from ...execution.current_job import RunningJob
from ...gates import MONITOR, SESSION, JobGates
from ...operations.claim import Claimer, Filters
from ...operations.gates import keys_of
from ...operations.task_gate import take
from ...queries import exchange as exchange_queries
from ...queries import workers as worker_queries
from ...queries.claim import ClaimedJob
from ...queries.enqueue import wake_any_workers
from ...queries.gates import Released
from ..connection import is_lost
from .claimed_jobs import ClaimedJobs
from .completions import Completions
from .give_back import RETRIABLE
from .heartbeat import Heartbeat
from .next_claim import NextClaim
from .release_after_finish import ReleaseAfterFinish, read_ends
from .turnstile import Turnstile

logger = logging.getLogger("django_tenantqueue")

Connection = psycopg.Connection[Any]

GROUP_SECONDS = 0.005
"""A lone completion waits at most so long for company."""
GROUP_STRETCH = 2.0
MOST_GROUP_SECONDS = 0.05
"""When the database is slow to answer, completions wait for GROUP_STRETCH times what the last round
trip took, at most MOST_GROUP_SECONDS: fewer and larger transactions are what relieves it."""


class RoundTrip:
    """Exchanges what one worker process has for what it gets, and tells its other parts."""

    def __init__(
        self,
        worker_id: int,
        claimer: Claimer,
        claimed_jobs: ClaimedJobs,
        completions: Completions,
        release_after_finish: ReleaseAfterFinish,
        heartbeat: Heartbeat,
        turnstile: Turnstile,
        next_claim: NextClaim,
        *,
        doubt: Callable[[psycopg.Error], None],
    ) -> None:
        self.at = 0.0
        """When the last one ended (monotonic time)."""
        self.group_seconds = GROUP_SECONDS
        """A lone completion waits so long for company."""
        self.ended: list[int] = []
        """Jobs whose places are free once their ends are stored."""
        self._worker_id = worker_id
        self._claimer = claimer
        self._claimed_jobs = claimed_jobs
        self._completions = completions
        self._release_after_finish = release_after_finish
        self._heartbeat = heartbeat
        self._turnstile = turnstile
        self._next_claim = next_claim
        self._doubt = doubt
        self._queue_names: dict[int, tuple[str, str]] = {}

    def exchange(self, connection: Connection, *, claim: bool) -> bool:
        """Store what has ended and claim, if told so; False: it was refused."""
        finished, failed = self._completions.take()
        request = self._claimer.request(*self._claimed_jobs.room()) if claim else None
        ends = bool(finished or failed)
        ended = read_ends((*finished, *failed))
        feed = self._release_after_finish.take_monitors(ended)
        in_line = (
            claim and self._turnstile.expected and not (ends or feed or len(self._claimed_jobs))
        )
        began = time.monotonic()
        try:
            answer = exchange_queries.exchange(
                connection,
                self._worker_id,
                finished=finished,
                failed=failed,
                request=request,
                max_errors=get_settings().max_errors,
                in_line=in_line,
                feed=feed,
                by_tenant=get_settings().priority_scope == "tenant",
            )
        except psycopg.Error as error:
            self._release_after_finish.note_keys({MONITOR: set(feed)})
            if is_lost(connection, error):
                self._completions.put_back(finished, failed)
                raise
            self._refused(error)
            stored = self._completions.store_singly(connection, finished, failed)
            self._release_after_finish.note(read_ends(stored))
            self.let_through(connection)
            return False
        self.at = now = time.monotonic()
        stretched = min(MOST_GROUP_SECONDS, GROUP_STRETCH * (now - began))
        self.group_seconds = max(GROUP_SECONDS, stretched)
        self._completions.warn_lost(finished, failed, answer)
        self._free_places()
        self._release_after_finish.note(ended, but=MONITOR)
        if request is not None:
            self._heartbeat.count_claim()
            if answer.jobs:
                slots_left = min(job.slots_left for job in answer.jobs)
                self._claimed_jobs.claim_ahead.answered(now - began, slots_left=slots_left)
            self._hand_out(connection, answer.jobs)
            verdict = self._claimer.learn(request, answer)
            if in_line:
                self._turnstile.stood(verdict, now - began, found=bool(answer.jobs))
            else:
                self._turnstile.tried(verdict, found=bool(answer.jobs), beside_ends=ends)
            self._next_claim.learn(connection, verdict, request, answer, began=began, now=now)
        if answer.rescheduled:
            self._claimer.surveys.hurry()
        self._take_fed(answer.fed, now)
        if answer.fed.ready:
            if request is None or self._claimer.surveys.is_active:
                self._next_claim.hurry()
            self._share(connection, answer.fed.ready - _details(answer.jobs, feed))
        self.let_through(connection)
        return True

    def _take_fed(self, fed: Released, now: float) -> None:
        """Note where monitors have let details through, and what is left to be let through."""
        unfed = fed.later.pop(MONITOR, set())
        self._release_after_finish.note_keys(fed.later)
        # a claim in the same transaction did not know of them
        self._claimer.places.take(fed.places)
        if len(self._claimed_jobs):
            self._release_after_finish.postpone(unfed, now)
        else:
            self._release_after_finish.note_keys({MONITOR: unfed})

    def _hand_out(self, connection: Connection, jobs: Sequence[ClaimedJob]) -> None:
        """Give claimed jobs to the executors; those of controlled tasks need a slot of it first."""
        free = [job for job in jobs if not job.is_controlled]
        self._claimed_jobs.hand_out([self._as_running(connection, job) for job in free])
        if len(free) == len(jobs):
            return
        taken = take(connection, self._worker_id, [job for job in jobs if job.is_controlled])
        for job in (*taken.held, *taken.left):
            self._claimer.finished(job.queue_id)
        freed = keys_of(JobGates.read(job.gates) for job in taken.held if job.gates)
        freed.pop(SESSION, None)  # it keeps its turn there
        self._release_after_finish.note_keys(freed)
        if taken.left:
            self._claimed_jobs.to_give_back.setdefault(0.0, []).extend(
                (j.id, j.claim_seq) for j in taken.left
            )
        self._claimed_jobs.hand_out([self._as_running(connection, job) for job in taken.granted])

    def let_through(self, connection: Connection) -> None:
        """Let jobs through the gates of those whose ends are stored, and look for them at once."""
        done = self._release_after_finish.let_through(connection)
        if done.ready:
            self._claimer.places.take(done.places)
            self._next_claim.released()
            self._share(connection, done.ready - self._takes_any())

    def _takes_any(self) -> bool:
        """Whether this worker takes the next job that is ready, whatever its queue and kind."""
        return self._claimer.filters == Filters() and all(self._claimed_jobs.room())

    def _share(self, connection: Connection, ready: int) -> None:
        """Wake other workers for jobs that have become ready and are more than this one takes."""
        if ready > 0 and get_settings().notify:
            wake_any_workers(connection, most=ready, worker_id=self._worker_id)

    def _refused(self, error: psycopg.Error) -> None:
        self.at = time.monotonic()
        if isinstance(error, RETRIABLE):
            logger.info("storing and claiming jobs is tried again: %s", error)
        else:
            logger.error("storing and claiming jobs failed: %s", error)
            self._doubt(error)
            self._next_claim.put_off(1.0)

    def _as_running(self, connection: Connection, claimed: ClaimedJob) -> RunningJob:
        names = self._queue_names.get(claimed.queue_id)
        if names is None:
            names = worker_queries.find_queue_names(connection, claimed.queue_id)
            self._queue_names[claimed.queue_id] = names
        return RunningJob(claimed, tenant=names[0], queue=names[1])

    def _free_places(self) -> None:
        """Free the places of jobs whose end is stored (or was lost, which comes to the same)."""
        for job_id in self.ended:
            self._claimed_jobs.shared_memory.clear(job_id)
        self.ended.clear()


def _details(jobs: Sequence[ClaimedJob], monitors: Sequence[str]) -> int:
    """Return how many of these jobs are details of one of these monitors."""
    gates = (JobGates.read(job.gates) for job in jobs if job.gates is not None)
    return sum(passed.monitor in monitors for passed in gates)
