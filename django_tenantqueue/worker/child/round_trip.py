"""One round trip of the claim loop: store the ends of jobs, claim, and hand out jobs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from ...conf import get_settings
from ...execution.current_job import RunningJob
from ...execution.previous_job import needs_result
from ...gate_keys import MONITOR, SESSION, JobGates
from ...operations.claim import Claimer, Filters, Verdict
from ...operations.gates import keys_of
from ...operations.task_gate import take
from ...queries import round_trip as round_trip_queries
from ...queries import workers as worker_queries
from ...queries.claim import ClaimedJob, ClaimRequest
from ...queries.enqueue import wake_any_workers
from ...queries.finish import Failed, Finished
from ...queries.follow_ups import read_previous_results
from ...queries.round_trip import Exchange
from ..connection import is_lost
from .claimed_jobs import ClaimedJobs
from .completions import GROUP_SECONDS, Completions
from .heartbeat import Heartbeat
from .next_claim import NextClaim
from .release_after_finish import Ended, ReleaseAfterFinish, read_ends
from .return_claims import RETRIABLE

logger = logging.getLogger("django_tenantqueue")

Connection = psycopg.Connection[Any]


class RoundTrip:
    """Stores the ends of one worker process's jobs, and hands out the jobs that it claims."""

    def __init__(
        self,
        claimer: Claimer,
        claimed_jobs: ClaimedJobs,
        completions: Completions,
        heartbeat: Heartbeat,
        next_claim: NextClaim,
        doubt: Callable[[psycopg.Error], None],
    ) -> None:
        self.at = 0.0
        """When the last one ended (monotonic time)."""
        self.group_seconds = GROUP_SECONDS
        """How long a lone completion waits for others. When the server is slow to answer, this is
        twice as long as it took: fewer and larger transactions relieve it."""
        self.ended: list[int] = []
        """Jobs whose places in the shared memory are free once their ends are stored."""
        self.release_after_finish = ReleaseAfterFinish()
        self._claimer = claimer
        self._claimed_jobs = claimed_jobs
        self._completions = completions
        self._heartbeat = heartbeat
        self._next_claim = next_claim
        self._doubt = doubt
        self._queue_names: dict[int, tuple[str, str]] = {}

    def exchange(self, connection: Connection, *, claim: bool) -> bool:
        """Store the ends of jobs, and claim if `claim`; False: the server rejected it."""
        finished, failed = self._completions.take()
        ends: list[Finished | Failed] = [*finished, *failed]
        request = self._claimer.request(*self._claimed_jobs.room()) if claim else None
        gated = read_ends(ends)
        feed = self.release_after_finish.take_monitors(gated)
        at_turnstile = (
            claim
            and self._next_claim.turnstile.expected
            and not (ends or feed or len(self._claimed_jobs))
        )
        began = time.monotonic()
        try:
            answer = round_trip_queries.exchange(
                connection,
                self._claimer.worker_id,
                finished=finished,
                failed=failed,
                request=request,
                max_errors=get_settings().max_errors,
                at_turnstile=at_turnstile,
                feed=feed,
                by_tenant=get_settings().priority_scope == "tenant",
            )
        except psycopg.Error as error:
            self.release_after_finish.note_keys({MONITOR: set(feed)})
            if is_lost(connection, error):
                self._completions.put_back(finished, failed)
                raise
            self._refused(error)
            stored, follow_ups = self._completions.store_singly(connection, finished, failed)
            self.release_after_finish.note(read_ends(stored))
            self.release_after_finish.note_follow_ups(follow_ups)
            self.let_through(connection)
            return False
        self.at = time.monotonic()
        seconds = self.at - began
        self.group_seconds = max(GROUP_SECONDS, min(10 * GROUP_SECONDS, 2 * seconds))
        self._take_ended(ends, gated, answer)
        if request is not None:
            self._hand_out(connection, answer.jobs)
            verdict = self._learn(request, answer, seconds, at_turnstile, beside_ends=bool(ends))
            self._next_claim.learn(connection, verdict, request, answer, began=began, now=self.at)
        if answer.rescheduled:
            self._claimer.surveys.hurry()
        self._take_fed(connection, request, answer, feed)
        self.let_through(connection)
        return True

    def _take_ended(
        self, ends: Sequence[Finished | Failed], gated: Ended, answer: Exchange
    ) -> None:
        """Free the places, gates and keys of jobs that were stored, or lost."""
        self._completions.look_after(ends, answer)
        for job_id in self.ended:
            self._claimed_jobs.shared_memory.clear(job_id)
        self.ended.clear()
        self.release_after_finish.note(gated, but=MONITOR)
        if answer.follow_ups:
            claimed = {job.id for job in answer.jobs}
            left = [job for job in answer.follow_ups if job.id not in claimed]
            self.release_after_finish.note_follow_ups(left)

    def _learn(
        self,
        request: ClaimRequest,
        answer: Exchange,
        seconds: float,
        at_turnstile: bool,
        *,
        beside_ends: bool,
    ) -> Verdict:
        self._heartbeat.count_claim()
        if answer.jobs:
            slots_left = min(job.slots_left for job in answer.jobs)
            self._claimed_jobs.claim_ahead.answered(seconds, slots_left=slots_left)
        verdict = self._claimer.learn(request, answer)
        turnstile = self._next_claim.turnstile
        if at_turnstile:
            turnstile.waited(verdict, seconds)
        else:
            turnstile.tried(verdict, found=bool(answer.jobs), beside_ends=beside_ends)
        return verdict

    def _take_fed(
        self,
        connection: Connection,
        request: ClaimRequest | None,
        answer: Exchange,
        feed: Sequence[str],
    ) -> None:
        fed = answer.fed
        unfed = fed.later.pop(MONITOR, set())
        self.release_after_finish.note_keys(fed.later)
        # a claim in the same transaction did not know of them
        self._claimer.places.take(fed.places)
        if len(self._claimed_jobs):
            self.release_after_finish.postpone(unfed, self.at)
        else:
            self.release_after_finish.note_keys({MONITOR: unfed})
        if fed.ready:
            if request is None or self._claimer.surveys.is_active:
                self._next_claim.hurry()
            self._share(connection, fed.ready - _details(answer.jobs, feed))

    def _hand_out(self, connection: Connection, jobs: Sequence[ClaimedJob]) -> None:
        """Pass claimed jobs to the executors; those of controlled tasks need a slot of it first."""
        free = [job for job in jobs if not job.is_controlled]
        self._claimed_jobs.hand_out(self._as_running(connection, free))
        if len(free) == len(jobs):
            return
        controlled = [job for job in jobs if job.is_controlled]
        taken = take(connection, self._claimer.worker_id, controlled)
        self.release_after_finish.wait_for_starts(taken.due, time.monotonic())
        for job in (*taken.held, *taken.left):
            self._claimer.places.finished(job.queue_id)
        freed = keys_of(JobGates.read(job.gates) for job in taken.held if job.gates)
        freed.pop(SESSION, None)  # it keeps its turn there
        self.release_after_finish.note_keys(freed)
        self._claimed_jobs.return_claims((job.id, job.claim_seq) for job in taken.left)
        self._claimed_jobs.hand_out(self._as_running(connection, taken.granted))

    def let_through(self, connection: Connection) -> None:
        """Release jobs at the gates of those whose ends are stored, and look for them at once."""
        done = self.release_after_finish.let_through(connection)
        if done.ready:
            self._claimer.places.take(done.places)
            self._next_claim.released()
            # this worker takes one if it takes every queue and kind
            takes_any = self._claimer.filters == Filters() and all(self._claimed_jobs.room())
            self._share(connection, done.ready - takes_any)

    def _share(self, connection: Connection, ready: int) -> None:
        """Wake other workers for ready jobs that this one does not take."""
        if ready > 0 and get_settings().notify:
            wake_any_workers(connection, most=ready, worker_id=self._claimer.worker_id)

    def _refused(self, error: psycopg.Error) -> None:
        self.at = time.monotonic()
        if isinstance(error, RETRIABLE):
            logger.info("storing and claiming jobs failed, retrying: %s", error)
        else:
            logger.error("storing and claiming jobs failed: %s", error)
            self._doubt(error)
            self._next_claim.put_off(1.0)

    def _as_running(self, connection: Connection, jobs: Sequence[ClaimedJob]) -> list[RunningJob]:
        found = []
        for claimed in jobs:
            names = self._queue_names.get(claimed.queue_id)
            if names is None:
                names = worker_queries.find_queue_names(connection, claimed.queue_id)
                self._queue_names[claimed.queue_id] = names
            found.append(RunningJob(claimed, tenant=names[0], queue=names[1]))
        if following := [running for running in found if needs_result(running._claimed)]:
            _read_results(connection, following)
        return found


def _read_results(connection: Connection, following: Sequence[RunningJob]) -> None:
    """Read the results of the previous jobs, all at once; else each thread reads its own."""
    try:
        results = read_previous_results(connection, [running.id for running in following])
    except psycopg.Error as error:
        logger.info("reading results of previous jobs failed, reading them one by one: %s", error)
        return
    for running in following:
        running._previous_result = results.get(running.id)


def _details(jobs: Sequence[ClaimedJob], monitors: Sequence[str]) -> int:
    """Return how many of these jobs are details of one of these monitors."""
    gates = (JobGates.read(job.gates) for job in jobs if job.gates is not None)
    return sum(passed.monitor in monitors for passed in gates)
