"""When a worker process claims next, after what its last claim found."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from ...operations.claim import Claimer, Verdict
from ...queries.claim import ClaimRequest
from ...queries.exchange import Exchange
from .claimed_jobs import ClaimedJobs
from .full_queue_watcher import FullQueueWatcher
from .sleep import Sleep
from .turnstile import Turnstile

SEARCH_SECONDS = 0.5
"""Pause before the first look for coroutines while all threads are taken; doubled each time."""
MOST_SEARCH_SECONDS = 2.0
"""Longest pause between two of them."""
MOST_SEARCHES = 3
"""So many of them before a worker whose threads are all taken may go to sleep."""
LATER_SECONDS = 0.005
"""Pause after a claim that took all there was. What ends meanwhile is stored with the next claim,
which then costs no transaction of its own."""

Connection = psycopg.Connection[Any]


class NextClaim:
    """Tells one claim loop when to claim, and calls other workers for what it leaves to them."""

    def __init__(
        self,
        claimer: Claimer,
        claimed_jobs: ClaimedJobs,
        sleep: Sleep,
        turnstile: Turnstile,
        full_queue_watcher: FullQueueWatcher,
        *,
        burst: bool,
    ) -> None:
        self.due_at = time.monotonic()
        """When the next claim is due (monotonic time); sooner with something to store."""
        self.idle_rounds = 0
        """Claims in a row that found nothing ready."""
        self._claimer = claimer
        self._claimed_jobs = claimed_jobs
        self._sleep = sleep
        self._turnstile = turnstile
        self._full_queue_watcher = full_queue_watcher
        self._burst = burst
        self._searches = 0
        """Looks for coroutines alone, one after the other, that found nothing."""
        self._was_notified = False

    def hurry(self, at: float = 0.0) -> None:
        """Claim at a time (monotonic) at the latest; at once unless one is given."""
        self.due_at = min(self.due_at, at)

    def put_off(self, seconds: float) -> None:
        """Claim no sooner than in so many seconds: a statement has failed."""
        self.due_at = time.monotonic() + seconds

    def notified(self) -> None:
        """Claim at once: somebody has enqueued, and has ended this worker's sleep."""
        self._sleep.notified()
        self._claimer.notified()
        self._claimer.surveys.hurry()
        self._was_notified = True
        self.hurry()

    def released(self) -> None:
        """Claim at once: gates have let jobs through, for which a worker in burst mode stays."""
        self.idle_rounds = 0
        self._claimer.surveys.hurry()
        self.hurry()

    def learn(
        self,
        connection: Connection,
        verdict: Verdict,
        request: ClaimRequest,
        answer: Exchange,
        *,
        began: float,
        now: float,
    ) -> None:
        """Take in what a claim brought that was sent at `began` and answered by `now`."""
        was_notified, self._was_notified = self._was_notified, False
        if answer.jobs:
            self.idle_rounds = 0
            self._claimer.surveys.found_work()
            self._sleep.found_work(connection)
            if request.is_filled_by(answer.jobs):
                self._call_others(connection, answer, now)
            self._searches = 0
        elif was_notified and verdict is Verdict.BLOCKED and request.room_threads == 0:
            # it may be a job for a thread, and another worker may have one free
            self._sleep.pass_on(connection, now)
        if self._is_searching(verdict, answer):
            self.due_at = now + min(MOST_SEARCH_SECONDS, SEARCH_SECONDS * 2.0**self._searches)
            self._searches = min(10, self._searches + 1)
        elif verdict is Verdict.AGAIN:
            self.due_at = now
        elif verdict is Verdict.LATER:
            self.due_at = now + LATER_SECONDS
        elif verdict is Verdict.CONTENDED:
            self.due_at = now + max(self._claimer.wait_seconds, self._turnstile.rest_seconds)
        else:
            self.due_at = now + self._seconds_to_look(connection, verdict, request, began, now)
        if self._was_notified:  # behind the answer to a statement of this method
            self.due_at = now

    def _seconds_to_look(
        self,
        connection: Connection,
        verdict: Verdict,
        request: ClaimRequest,
        began: float,
        now: float,
    ) -> float:
        """Return the pause after a claim that left nothing for this worker."""
        surveys = self._claimer.surveys
        if self._burst and surveys.is_active:
            surveys.leave()  # it ends when there is nothing anywhere
            return 0.0
        if verdict is Verdict.EMPTY:
            self.idle_rounds += 1
            self._full_queue_watcher.leave(connection)
        elif self._burst and not len(self._claimed_jobs):
            # paused, without slots, or full of others' jobs: not for this worker, if the next look
            # at all of them says the same
            self.idle_rounds += 1
            self._claimer.forget_blocked()
        blocked = verdict is Verdict.BLOCKED
        if self._sleep.can_be_notified and not self._sleep.number:
            look = surveys.pause()
            if look is not None:
                return min(look, self._claimer.wait_seconds) if blocked else look
        number = self._sleep.number
        look = self._sleep.next_look(connection, now, looked_at=began, blocked=blocked)
        if self._sleep.number != number:
            surveys.announced()
        if look is not None:
            return look
        if not blocked:
            return self._sleep.seconds
        look = self._claimer.wait_seconds
        if self._sleep.can_be_notified and request.room_threads and request.room_async:
            look = self._full_queue_watcher.seconds(connection, look)
        return look

    def _call_others(self, connection: Connection, answer: Exchange, now: float) -> None:
        """Wake another worker for what this one leaves, since it has no more room."""
        ended = len(answer.finished) + len(answer.rescheduled)
        if self._full_queue_watcher.leave(connection):
            self._sleep.wake_now(connection, now)
        elif len(answer.jobs) > ended and any(job.slots_left > 0 for job in answer.jobs):
            # not when they only follow those that have ended: nothing has changed for the others
            self._sleep.wake_another(connection, now)

    def _is_searching(self, verdict: Verdict, answer: Exchange) -> bool:
        """Whether a claim could only bring what is not urgent here: no thread is free.

        Either the room is for coroutines, and none have come lately, or for claiming ahead, and
        others are at the queues. A completion claims anyway.
        """
        if self._claimed_jobs.free_threads() or self._claimer.expects_coroutines:
            return False
        if verdict in (Verdict.AGAIN, Verdict.LATER):
            found = any(job.is_async for job in answer.jobs)
            return self._claimed_jobs.room()[0] == 0 and not found
        return verdict is Verdict.CONTENDED or (
            self._claimed_jobs.room()[0] == 0 and self._searches < MOST_SEARCHES
        )
