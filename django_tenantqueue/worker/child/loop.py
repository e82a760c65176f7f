"""The database side of a worker process: claim, hand out, collect, finish, and again.

One thread, one connection. A round of the loop is `run_once()`. It stores the jobs that have ended
and claims as many as there is room for, in one transaction.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

import psycopg

from ...execution.current_job import RunningJob
from ...execution.job_log import about
from ...execution.outcome import Outcome
from ...gate_keys import JobGates
from ...operations.claim import Claimer
from ...queries import workers as worker_queries
from ...queries.claim import MOST_ROOM
from ..config import WorkerConfig
from ..connection import REMINDER_SECONDS, WorkerConnection, end_session, is_lost
from ..shared_memory import SharedMemory
from ..waiting import Waiter
from .claimed_jobs import ClaimedJobs
from .completions import RETRY_SECONDS, Completions
from .heartbeat import Heartbeat
from .next_claim import NextClaim
from .return_claims import RETRIABLE, GiveBack
from .round_trip import RoundTrip
from .running_jobs import RunningJobs
from .unknown_tasks import UnknownTasks

logger = logging.getLogger("django_tenantqueue")

GROUP_SIZE = MOST_ROOM // 2
"""Most completions that wait for each other."""


class ClaimLoop:
    """Claims jobs for one process, hands them to its executors and stores how they ended."""

    def __init__(
        self,
        config: WorkerConfig,
        worker_id: int,
        connection: WorkerConnection,
        reconnect: Callable[[], WorkerConnection],
        shared_memory: SharedMemory | None = None,
    ) -> None:
        self.config = config
        self.worker_id = worker_id
        self.connection = connection
        self.claimer = Claimer(
            worker_id, config.filters, queue_range=worker_queries.queue_range(connection)
        )
        self.unknown_tasks = UnknownTasks(worker_id)
        self.claimer.left_tasks = self.unknown_tasks.left
        self.claimer.left_jobs = self.unknown_tasks.left_jobs
        self.claimed_jobs = ClaimedJobs(config.threads, config.async_slots, shared_memory)
        self.completions = Completions(worker_id)
        self.give_back = GiveBack(
            worker_id, self.claimed_jobs, self.completions, self.unknown_tasks
        )
        self.running_jobs = RunningJobs(worker_id, self.claimed_jobs, self.completions)
        self.heartbeat = Heartbeat(worker_id, max_jobs=config.max_jobs, max_rss=config.max_rss)
        self.next_claim = NextClaim(self.claimer, self.claimed_jobs, until_empty=config.until_empty)
        self.waiter = Waiter()
        self._reconnect = reconnect
        self.round_trip = RoundTrip(
            self.claimer,
            self.claimed_jobs,
            self.completions,
            self.heartbeat,
            self.next_claim,
            self._doubt,
        )
        self._release_after_finish = self.round_trip.release_after_finish
        self._ended: deque[tuple[RunningJob, Outcome]] = deque()
        self._wanted = 1
        """This many completions end the wait."""
        self._attend_notifications()

    # called by executors

    def report(self, running: RunningJob, outcome: Outcome) -> None:
        """Take the outcome of a run; called in the thread where it ran."""
        self._ended.append((running, outcome))
        if len(self._ended) >= self._wanted:
            self.waiter.wake()

    # one round

    def run_once(self) -> float:
        """Do everything that is due; return the seconds until the next round."""
        try:
            return self._round(time.monotonic())
        except psycopg.Error as error:
            if is_lost(self.connection, error):
                self._reopen(error)
                return 0.0
            logger.warning("%s: a statement failed, retrying: %s", self.config.name, error)
            self._doubt(error)
            self.next_claim.put_off(1.0)
            return 0.1

    def _round(self, now: float) -> float:
        self._wanted = 1
        self.claimed_jobs.shared_memory.turn()
        self._collect()
        self.completions.take_held_back(now)
        self._duties(now)
        self.round_trip.let_through(self.connection)
        waiting = len(self.completions)
        may_claim = self._may_claim()
        claim = may_claim and (waiting > 0 or self.next_claim.due_at <= now)
        if not waiting and not claim:
            return self._rest(now)
        pause = self.round_trip.at + self.round_trip.group_seconds - now
        if waiting and pause > 0 and waiting < GROUP_SIZE and len(self.claimed_jobs):
            # this thread sleeps until the group is full, or nothing runs any more
            self._wanted = min(GROUP_SIZE - waiting, len(self.claimed_jobs))
            return pause
        is_idle = not len(self.claimed_jobs)
        if waiting and claim and is_idle and self.next_claim.turnstile.is_crowded():
            claim = False
            self.next_claim.hurry(now)
        is_done = self.round_trip.exchange(self.connection, claim=claim)
        if is_done and claim and self.claimer.surveys.is_due:
            self._survey()
        return 0.0

    def _survey(self) -> None:
        try:
            self.claimer.surveys.run_once(self.connection)
        except psycopg.Error as error:
            if is_lost(self.connection, error):
                raise
            logger.warning("searching for ready jobs past dead index entries failed: %s", error)
        else:
            self.next_claim.hurry()

    def wait(self, seconds: float) -> None:
        """Sleep until woken by an executor, a notification, or after `seconds`."""
        if seconds <= 0 or len(self._ended) >= self._wanted or self._has_heard():
            return
        socket = None if self.connection.closed else self.connection.fileno()
        if self.waiter.wait(seconds, socket):
            self._hear()

    def _may_claim(self) -> bool:
        return any(self.claimed_jobs.room())

    def _rest(self, now: float) -> float:
        """Return the seconds until something is due."""
        due = [
            self.heartbeat.next_at,
            self.running_jobs.next_at if len(self.claimed_jobs) else None,
            self.completions.next_try_at,
            self._release_after_finish.next_at,
            self.give_back.next_at,
            self.claimer.passed_over.next_at,
            self.next_claim.due_at if self._may_claim() else None,
        ]
        return max(0.0, min(at for at in due if at is not None) - now)

    # completions

    def _collect(self) -> None:
        while self._ended:
            running, outcome = self._ended.popleft()
            if not self.claimed_jobs.remove(running):
                continue
            claimed = running._claimed
            self.round_trip.ended.append(claimed.id)
            self.heartbeat.count_job()
            self.heartbeat.figures.ended(running, outcome)
            self.claimer.places.finished(claimed.queue_id)
            record = outcome.finished or outcome.failed
            if record is not None:
                self.completions.add(record)
                continue
            if outcome.stored and claimed.gates:
                self._release_after_finish.note([(claimed.id, JobGates.read(claimed.gates))])
            self._release_after_finish.note_follow_ups(outcome.follow_ups)
            # nothing is left to store, as with an atomic task, but there is room for a job
            self.next_claim.hurry(self.round_trip.at + self.round_trip.group_seconds)
            if outcome.is_unknown:
                self.claimed_jobs.unknown.append((running, outcome))
            elif outcome.give_back is not None:
                self.claimed_jobs.to_return(running, outcome.give_back, outcome.reason)
            elif outcome.lost:
                logger.warning(
                    "job %s (%s): the claim was lost",
                    claimed.id,
                    claimed.task,
                    extra=about(running),
                )

    # duties beside the claim

    def _duties(self, now: float) -> None:
        if not self.unknown_tasks.has_started:
            self.unknown_tasks.start(self.connection)
        if self.give_back.next_at is not None and self.give_back.next_at <= now:
            self.give_back.run_once(self.connection)
            self.claimer.surveys.hurry()
        if (step_at := self.claimer.passed_over.next_at) is not None and step_at <= now:
            self._release_after_finish.note_keys(self.claimer.passed_over.step(self.connection))
            self.next_claim.hurry(now)
        if len(self.claimed_jobs):
            self.running_jobs.run_once(self.connection, now)
        if self.heartbeat.next_at <= now:
            self._beat(now)
            self.give_back.find_lost_claims(self.connection)
        if not self.claimed_jobs.draining and (why := self.heartbeat.age_limit(now)):
            logger.info("%s drains and is replaced: %s", self.config.name, why)
            self.claimed_jobs.draining = True
            self.claimed_jobs.shared_memory.retire()
        if self.claimed_jobs.draining:
            self.next_claim.sleep.retire(self.connection)

    def _beat(self, now: float) -> None:
        """Write a heartbeat, unless this worker's row is locked."""
        sent_at = time.monotonic()
        try:
            wanted = self.heartbeat.beat(self.connection, now, len(self.claimed_jobs.running()))
        except RETRIABLE as error:
            logger.warning(
                "%s: writing the heartbeat failed, retrying: %s", self.config.name, error
            )
        else:
            self.claimed_jobs.shared_memory.beat(sent_at)
            self.unknown_tasks.forget_jobs()
            if self.heartbeat.has_unknown:
                self._share_unknown_tasks()
            if wanted:
                self.claimed_jobs.draining = True
                self.claimed_jobs.shared_memory.dismiss()
        self._store_figures()

    def _share_unknown_tasks(self) -> None:
        try:
            self.unknown_tasks.share(self.connection)
        except RETRIABLE as error:
            logger.info("sharing unknown tasks failed, retrying: %s", error)

    def _store_figures(self) -> None:
        """Add to the minute figures; a failed write is retried with the next heartbeat."""
        for running in self.claimed_jobs.running():
            self.heartbeat.figures.started(running)
        try:
            self.heartbeat.figures.store(self.connection)
        except psycopg.Error as error:
            if is_lost(self.connection, error):
                raise
            if isinstance(error, RETRIABLE):
                logger.warning("storing figures failed, retrying: %s", error)
            else:
                logger.warning("storing figures failed, they are dropped: %s", error)
                self.heartbeat.figures.forget()

    def _doubt(self, error: psycopg.Error) -> None:
        """Compare the claims in the rows with those known here, now and for some time.

        The error is written to this worker's row, where operators see it.
        """
        self.give_back.doubt()
        self.heartbeat.note_error(str(error))
        self.heartbeat.hurry()

    # notifications

    def _attend_notifications(self) -> None:
        """Take notifications that arrive together with the answer to a statement, too."""
        self.connection.add_notify_handler(lambda _notification: self.notified())

    def _hear(self) -> None:
        """Read what the server sent by itself: notifications, or its end."""
        try:
            self.connection.pgconn.consume_input()
        except psycopg.Error as error:
            self._reopen(error)
        else:
            self._has_heard()

    def _has_heard(self) -> bool:
        """Take the notifications that were read already; return whether there were any.

        One that arrives behind the answer to a statement may be read together with it. The socket
        is not readable then.
        """
        raw, heard = self.connection.pgconn, False
        while not self.connection.closed and raw.notifies():
            self.notified()
            heard = True
        return heard

    def notified(self) -> None:
        """Claim at once: an enqueuer has ended this worker's sleep."""
        self.next_claim.notified()

    # connection

    def _reopen(self, error: psycopg.Error) -> None:
        """Reconnect, for as long as it takes. Jobs continue to run."""
        logger.warning("%s: the connection to the database was lost: %s", self.config.name, error)
        self._doubt(error)
        lost, lost_at = self.connection, time.monotonic()
        lost.close()
        pause, reminder_at = 0.1, lost_at
        while True:
            try:
                self.connection = self._reconnect()
                end_session(self.connection, lost.backend_pid)
                break
            except psycopg.Error as again:
                if time.monotonic() >= reminder_at:
                    reminder_at = time.monotonic() + REMINDER_SECONDS
                    logger.warning(
                        "connecting to the database failed, retrying: %s",
                        again,
                    )
                time.sleep(pause)
                pause = min(2.0, pause * 2)
        logger.info("connected to the database again after %.1f s", time.monotonic() - lost_at)
        self._attend_notifications()
        self.claimer.surveys.leave()  # it may be another server, with another clock
        self.next_claim.sleep.reconnected()
        self.next_claim.hurry()

    # the end

    def drained(self) -> bool:
        """Whether nothing runs and nothing is left to store."""
        return not (
            len(self.claimed_jobs)
            or self._ended
            or not self.give_back.is_empty
            or not self.completions.is_empty
            or self._release_after_finish.is_postponed
        )

    def return_unstarted(self) -> None:
        """Return the jobs that were claimed but have not started."""
        for running in self.claimed_jobs.unfinished():
            if running._started is None:
                self.claimed_jobs.give_back(running)

    def abandon(self) -> int:
        """Store ended jobs, return unstarted ones, and count the jobs that still run.

        These keep their claims until this process is gone. Then the supervisor returns them, so
        that they do not start elsewhere beside their old runs.
        """
        self.give_back.find_lost_claims(self.connection)
        self.return_unstarted()
        end = time.monotonic() + 3.0  # if rows are locked
        while True:
            self._collect()
            self.completions.take_held_back(time.monotonic())
            if len(self.completions):
                self.round_trip.exchange(self.connection, claim=False)
            self.give_back.run_once(self.connection)
            if self.completions.is_empty and self.give_back.is_empty:
                break
            if time.monotonic() > end:
                logger.error(
                    "%s: storing or returning jobs failed: their rows are locked", self.config.name
                )
                break
            time.sleep(RETRY_SECONDS)
        return len(self.claimed_jobs.unfinished())

    def close(self) -> None:
        """Delete this worker's row, wake another worker, and close the connection."""
        try:
            self._store_figures()
            self.next_claim.sleep.retire(self.connection)
            worker_queries.delete_worker(self.connection, self.worker_id)
        except psycopg.Error as error:
            logger.warning("deleting the row of worker %s failed: %s", self.worker_id, error)
        self.connection.close()
