"""The database side of a worker process: claim, hand out, collect, finish, again.

One thread, one connection. A round of the loop is `run_once()`: it stores what has ended and
claims what there is room for, in one transaction.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from ...conf import get_settings
from ...execution.current_job import RunningJob
from ...execution.outcome import Outcome
from ...gates import MONITOR, SESSION, JobGates
from ...operations.claim import Claimer, Filters
from ...operations.gates import keys_of
from ...operations.task_gate import take
from ...queries import exchange as exchange_queries
from ...queries import workers as worker_queries
from ...queries.claim import ClaimedJob
from ...queries.enqueue import wake_any_workers
from ..config import WorkerConfig
from ..shared_memory import SharedMemory
from ..survey import survey
from ..waiting import Waiter
from .claimed_jobs import ClaimedJobs
from .completions import RETRY_SECONDS, Completions
from .full_queue_watcher import FullQueueWatcher
from .give_back import RETRIABLE, GiveBack
from .heartbeat import Heartbeat
from .next_claim import NextClaim
from .release_after_finish import ReleaseAfterFinish, read_ends
from .running_jobs import RunningJobs
from .sleep import Sleep
from .turnstile import Turnstile

logger = logging.getLogger("django_tenantqueue")

GROUP_SECONDS = 0.005
"""A lone completion waits at most so long for company."""
GROUP_STRETCH = 2.0
MOST_GROUP_SECONDS = 0.05
"""When the database is slow to answer, completions wait for GROUP_STRETCH times what the last round
trip took, at most MOST_GROUP_SECONDS: fewer and larger transactions are what relieves it."""
GROUP_SIZE = 100
"""So many completions are written at once."""
FAREWELL_SECONDS = 3.0
"""How long a process that ends tries to give its jobs back when somebody has locked their rows."""


class ClaimLoop:
    """Claims jobs for one process, hands them to its executors and stores how they ended."""

    def __init__(
        self,
        config: WorkerConfig,
        worker_id: int,
        connection: psycopg.Connection[Any],
        reconnect: Callable[[], psycopg.Connection[Any]],
        shared_memory: SharedMemory | None = None,
    ) -> None:
        self.config = config
        self.worker_id = worker_id
        self.connection = connection
        self.claimer = Claimer(
            worker_id, config.filters, queue_range=worker_queries.queue_range(connection)
        )
        self.claimed_jobs = ClaimedJobs(config.threads, config.async_slots, shared_memory)
        self.completions = Completions(worker_id)
        self.sleep = Sleep(worker_id, burst=config.burst)
        self.give_back = GiveBack(worker_id, self.claimed_jobs, self.completions)
        self.running_jobs = RunningJobs(worker_id, self.claimed_jobs, self.completions)
        self.heartbeat = Heartbeat(worker_id, max_jobs=config.max_jobs, max_rss=config.max_rss)
        self.turnstile = Turnstile()
        self.full_queue_watcher = FullQueueWatcher(config.filters)
        self.next_claim = NextClaim(
            self.claimer,
            self.claimed_jobs,
            self.sleep,
            self.turnstile,
            self.full_queue_watcher,
            burst=config.burst,
        )
        self.waiter = Waiter()
        self.draining = False
        self._reconnect = reconnect
        self._removed: list[int] = []
        self._release_after_finish = ReleaseAfterFinish()
        self._ended: deque[tuple[RunningJob, Outcome]] = deque()
        self._wanted = 1
        """So many completions end the wait."""
        self._queue_names: dict[int, tuple[str, str]] = {}
        self._exchanged_at = 0.0
        self._group_seconds = GROUP_SECONDS
        self._attend_notifications()

    # called by executors

    def report(self, running: RunningJob, outcome: Outcome) -> None:
        """Take the outcome of a run; called in the thread where it ran."""
        self._ended.append((running, outcome))
        if len(self._ended) >= self._wanted:
            self.waiter.wake()

    # one round

    def run_once(self) -> float:
        """Do what is due; return the seconds until something may be due again."""
        try:
            return self._round(time.monotonic())
        except psycopg.Error as error:
            if self._is_lost(error):
                self._reopen(error)
                return 0.0
            logger.warning("a statement of the worker failed, it is repeated: %s", error)
            self._doubt(error)
            self.next_claim.put_off(1.0)
            return 0.1

    def _round(self, now: float) -> float:
        self._wanted = 1
        self.claimed_jobs.shared_memory.turn()
        if not self.sleep.number:
            self.claimed_jobs.shared_memory.sleep(0)
        self._collect()
        self.completions.take_held_back(now)
        self._duties(now)
        self._let_through()
        waiting = len(self.completions)
        may_claim = self._may_claim()
        claim = may_claim and (waiting > 0 or self.next_claim.due_at <= now)
        if not waiting and not claim:
            return self._rest(now)
        pause = self._exchanged_at + self._group_seconds - now
        if waiting and pause > 0 and waiting < GROUP_SIZE and len(self.claimed_jobs):
            # nobody needs to wake this thread before the group is full, or nothing runs any more
            self._wanted = min(GROUP_SIZE - waiting, len(self.claimed_jobs))
            return pause
        if waiting and claim and not len(self.claimed_jobs) and self.turnstile.is_crowded():
            claim = False
            self.next_claim.hurry(now)
        if self._exchange(claim) and claim and self.claimer.surveys.is_due:
            self._survey()
        return 0.0

    def _survey(self) -> None:
        """Look for all places where jobs are ready, and claim again."""
        try:
            survey(self.connection, self.claimer.surveys)
        except psycopg.Error as error:
            if self._is_lost(error):
                raise
            logger.warning("looking for ready jobs behind dead index entries failed: %s", error)
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
        return not self.draining and any(self.claimed_jobs.room())

    def _rest(self, now: float) -> float:
        """Return how long there is nothing to do."""
        self.claimed_jobs.shared_memory.sleep(0 if len(self.claimed_jobs) else self.sleep.number)
        due = [self.heartbeat.next_at]
        if len(self.claimed_jobs):
            due.append(self.running_jobs.next_at)
        if self.completions.next_try_at is not None:
            due.append(self.completions.next_try_at)
        if self._release_after_finish.next_at is not None:
            due.append(self._release_after_finish.next_at)
        if self.give_back.next_at is not None:
            due.append(self.give_back.next_at)
        if self.claimer.passed_over.next_at is not None:
            due.append(self.claimer.passed_over.next_at)
        if self._may_claim():
            due.append(self.next_claim.due_at)
        return max(0.0, min(due) - now)

    # completions

    def _collect(self) -> None:
        while self._ended:
            running, outcome = self._ended.popleft()
            if not self.claimed_jobs.remove(running):
                continue
            claimed = running.claimed
            self._removed.append(claimed.id)
            self.heartbeat.count_job()
            self.claimer.finished(claimed.queue_id)
            record = outcome.finished or outcome.failed
            if record is not None:
                self.completions.add(record)
                continue
            if outcome.stored and claimed.gates:
                self._release_after_finish.note([(claimed.id, JobGates.read(claimed.gates))])
            # nothing is left to store, as with an atomic task: its place is free all the same
            self.next_claim.hurry(self._exchanged_at + self._group_seconds)
            if outcome.give_back is not None:
                logger.warning(
                    "job %s: this worker does not know %r; given back", claimed.id, claimed.name
                )
                self.claimed_jobs.to_return(running, outcome.give_back, outcome.reason)
            elif outcome.lost:
                logger.warning("job %s (%s): the claim was lost", claimed.id, claimed.name)

    # the round trip

    def _exchange(self, claim: bool) -> bool:
        """Store what has ended and claim, if told so; False: it was refused."""
        finished, failed = self.completions.take()
        request = self.claimer.request(*self.claimed_jobs.room()) if claim else None
        ends = bool(finished or failed)
        ended = read_ends((*finished, *failed))
        feed = self._release_after_finish.take_monitors(ended)
        in_line = claim and self.turnstile.expected and not (ends or feed or len(self.claimed_jobs))
        began = time.monotonic()
        try:
            answer = exchange_queries.exchange(
                self.connection,
                self.worker_id,
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
            if self._is_lost(error):
                self.completions.put_back(finished, failed)
                raise
            self._refused(error)
            stored = self.completions.store_singly(self.connection, finished, failed)
            self._release_after_finish.note(read_ends(stored))
            self._let_through()
            return False
        self._exchanged_at = now = time.monotonic()
        self._group_seconds = max(
            GROUP_SECONDS, min(MOST_GROUP_SECONDS, GROUP_STRETCH * (now - began))
        )
        self.completions.warn_lost(finished, failed, answer)
        self._free_places()
        self._release_after_finish.note(ended, but=MONITOR)
        unfed = answer.fed.later.pop(MONITOR, set())
        self._release_after_finish.note_keys(answer.fed.later)
        if request is not None:
            self.heartbeat.count_claim()
            if answer.jobs:
                slots_left = min(job.slots_left for job in answer.jobs)
                self.claimed_jobs.claim_ahead.answered(now - began, slots_left=slots_left)
            self._hand_out(answer.jobs)
            verdict = self.claimer.learn(request, answer)
            if in_line:
                self.turnstile.stood(verdict, now - began, found=bool(answer.jobs))
            else:
                self.turnstile.tried(verdict, found=bool(answer.jobs), beside_ends=ends)
            self.next_claim.learn(self.connection, verdict, request, answer, began=began, now=now)
        elif answer.fed.ready:
            self.next_claim.hurry()
        if answer.rescheduled:
            self.claimer.surveys.hurry()
        if answer.fed.ready:
            # a claim in the same transaction did not know of them
            self.claimer.places.take(answer.fed.places)
            if self.claimer.surveys.is_active:
                self.next_claim.hurry()
        if len(self.claimed_jobs):
            self._release_after_finish.postpone(unfed, now)
        else:
            self._release_after_finish.note_keys({MONITOR: unfed})
        if answer.fed.ready:
            self._share(answer.fed.ready - _details(answer.jobs, feed))
        self._let_through()
        return True

    def _hand_out(self, jobs: Sequence[ClaimedJob]) -> None:
        """Give claimed jobs to the executors; those of controlled tasks need a slot of it first."""
        free = [job for job in jobs if not job.is_controlled]
        self.claimed_jobs.hand_out([self._as_running(job) for job in free])
        if len(free) == len(jobs):
            return
        taken = take(self.connection, self.worker_id, [job for job in jobs if job.is_controlled])
        for job in (*taken.held, *taken.left):
            self.claimer.finished(job.queue_id)
        freed = keys_of(JobGates.read(job.gates) for job in taken.held if job.gates)
        freed.pop(SESSION, None)  # it keeps its turn there
        self._release_after_finish.note_keys(freed)
        if taken.left:
            self.claimed_jobs.to_give_back.setdefault(0.0, []).extend(
                (j.id, j.claim_seq) for j in taken.left
            )
        self.claimed_jobs.hand_out([self._as_running(job) for job in taken.granted])

    def _let_through(self) -> None:
        """Let jobs through the gates of those whose ends are stored, and look for them at once."""
        done = self._release_after_finish.let_through(self.connection)
        if done.ready:
            self.claimer.places.take(done.places)
            self.next_claim.released()
            self._share(done.ready - self._takes_any())

    def _takes_any(self) -> bool:
        """Whether this worker takes the next job that is ready, whatever its queue and kind."""
        return (
            not self.draining and self.config.filters == Filters() and all(self.claimed_jobs.room())
        )

    def _share(self, ready: int) -> None:
        """Wake other workers for jobs that have become ready and are more than this one takes."""
        if ready > 0 and get_settings().notify:
            wake_any_workers(self.connection, most=ready, worker_id=self.worker_id)

    def _refused(self, error: psycopg.Error) -> None:
        self._exchanged_at = time.monotonic()
        if isinstance(error, RETRIABLE):
            logger.info("storing and claiming jobs is tried again: %s", error)
        else:
            logger.error("storing and claiming jobs failed: %s", error)
            self._doubt(error)
            self.next_claim.put_off(1.0)

    def _as_running(self, claimed: ClaimedJob) -> RunningJob:
        names = self._queue_names.get(claimed.queue_id)
        if names is None:
            names = worker_queries.find_queue_names(self.connection, claimed.queue_id)
            self._queue_names[claimed.queue_id] = names
        return RunningJob(claimed, tenant=names[0], queue=names[1])

    def _free_places(self) -> None:
        """Free the places of jobs whose end is stored (or was lost, which comes to the same)."""
        for job_id in self._removed:
            self.claimed_jobs.shared_memory.clear(job_id)
        self._removed.clear()

    # duties beside the claim

    def _duties(self, now: float) -> None:
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
            self.give_back.find_unknown(self.connection)
        if not self.draining and (why := self.heartbeat.age_limit(now)):
            logger.info("%s makes room for a new process: %s", self.config.name, why)
            self.draining = True
            self.claimed_jobs.shared_memory.retire()
        if self.draining:
            self.full_queue_watcher.leave(self.connection)
            self.sleep.retire(self.connection)

    def _beat(self, now: float) -> None:
        """Give a sign of life; when somebody has locked this worker's row, the next one does."""
        try:
            wanted = self.heartbeat.beat(self.connection, now, len(self.claimed_jobs.running()))
        except RETRIABLE as error:
            logger.warning("the heartbeat is left out: %s", error)
        else:
            if wanted:
                self.draining = True
                self.claimed_jobs.shared_memory.dismiss()

    def _doubt(self, error: psycopg.Error) -> None:
        """Compare the claims in the rows with those known here, now and for a while.

        The error is told in this worker's row, for operators to see.
        """
        self.give_back.doubt()
        self.heartbeat.note_error(str(error))
        self.heartbeat.hurry()

    # notifications

    def _attend_notifications(self) -> None:
        """Hear notifications that arrive together with the answer to a statement, too."""
        self.connection.add_notify_handler(lambda _notification: self.notified())

    def _hear(self) -> None:
        """Read what the server sent while nothing was asked: notifications, or its end."""
        try:
            self.connection.pgconn.consume_input()
        except psycopg.Error as error:
            self._reopen(error)
        else:
            self._has_heard()

    def _has_heard(self) -> bool:
        """Take the notifications that were read already; return whether there were any.

        One that arrives behind the answer to a statement may be read with it and lie there: the
        socket then has nothing to say.
        """
        raw, heard = self.connection.pgconn, False
        while not self.connection.closed and raw.notifies():
            self.notified()
            heard = True
        return heard

    def notified(self) -> None:
        """Claim at once: somebody has enqueued, and has ended this worker's sleep."""
        self.next_claim.notified()

    # connection

    def _is_lost(self, error: psycopg.Error) -> bool:
        """Whether the connection is of no more use: an error of libpq's own has no SQLSTATE."""
        if self.connection.closed or self.connection.broken:
            return True
        return isinstance(error, psycopg.OperationalError) and error.sqlstate is None

    def _reopen(self, error: psycopg.Error) -> None:
        """Connect again, for as long as it takes; jobs go on running meanwhile."""
        logger.warning("the connection to the database was lost: %s", error)
        self.claimed_jobs.shared_memory.sleep(0)
        self._doubt(error)
        self.connection.close()
        pause = 0.1
        while True:
            try:
                self.connection = self._reconnect()
                break
            except psycopg.Error as again:
                logger.warning("connecting again in %.1f s: %s", pause, again)
                time.sleep(pause)
                pause = min(2.0, pause * 2)
        self._attend_notifications()
        self.sleep.reconnected()
        self.full_queue_watcher.reconnected()
        self.claimer.surveys.leave()  # it may be another server, with another clock
        self.next_claim.hurry()

    # the end

    def drained(self) -> bool:
        """Whether nothing runs and nothing is left to store."""
        return not (
            len(self.claimed_jobs)
            or self._ended
            or self.claimed_jobs.to_give_back
            or not self.completions.is_empty
            or self._release_after_finish.next_at is not None
        )

    def return_unstarted(self) -> None:
        """Give back what was claimed but not begun."""
        for running in self.claimed_jobs.unfinished():
            if running.started is None:
                self.claimed_jobs.give_back(running)

    def abandon(self) -> int:
        """Store what has ended and give back what was not begun; return how many jobs still run.

        Those keep their claims until this process is gone: the supervisor gives them back, lest
        they begin elsewhere beside their old runs.
        """
        self.give_back.find_unknown(self.connection)
        self.return_unstarted()
        end = time.monotonic() + FAREWELL_SECONDS
        while True:
            self._collect()
            self.completions.take_held_back(time.monotonic())
            if len(self.completions):
                self._exchange(claim=False)
            self.give_back.run_once(self.connection)
            if self.completions.is_empty and not self.claimed_jobs.to_give_back:
                break
            if time.monotonic() > end:
                logger.error("jobs could not be stored or given back: their rows are locked")
                break
            time.sleep(RETRY_SECONDS)
        return len(self.claimed_jobs.unfinished())

    def close(self) -> None:
        """Sign off, wake a worker that may go on, and close the connection."""
        try:
            self.sleep.retire(self.connection)
            worker_queries.delete_worker(self.connection, self.worker_id)
        except psycopg.Error as error:
            logger.warning("signing off failed: %s", error)
        self.connection.close()


def _details(jobs: Sequence[ClaimedJob], monitors: Sequence[str]) -> int:
    """Return how many of these jobs are details of one of these monitors."""
    gates = (JobGates.read(job.gates) for job in jobs if job.gates is not None)
    return sum(passed.monitor in monitors for passed in gates)
