"""When a worker process claims next, after the result of its last claim."""

from __future__ import annotations

import random
import time
from typing import Any

import psycopg

from ...conf import get_settings
from ...operations.claim import Claimer, Verdict
from ...operations.places import BLOCKED_SECONDS
from ...queries.claim import ClaimRequest
from ...queries.round_trip import Exchange
from .claimed_jobs import ClaimedJobs
from .completions import GROUP_SECONDS
from .sleep import SLEEP_SECONDS, Sleep

SEARCH_SECONDS = 1.0
"""Pause before a full worker looks for coroutines, or one that was woken idly sleeps again."""
MOST_DETOURS = 16
"""Most claims in a row made through the turnstile without trying a direct claim."""

Connection = psycopg.Connection[Any]


class Turnstile:
    """Decides when one worker process waits for its turn to claim.

    A claim that finds all ready jobs locked costs as much as one that takes some. So a worker that
    has nothing else to do makes its next claim at a turnstile, which admits one worker at a time.
    However many wait there, they cost as much as one. See docs/explanation/fleets.md.
    """

    def __init__(self) -> None:
        self.expected = False
        """The next claim waits at the turnstile, because the last one found all queues locked."""
        self.rest_seconds = 0.0
        """How long the worker stays away from the turnstile."""
        self._detours = 0
        self._longest = 1

    def is_crowded(self) -> bool:
        """Whether to store completions without a claim, and to claim at the turnstile afterwards.

        A claim beside a completion that found all queues locked makes the next completions do so,
        more of them each time.
        """
        if self._detours == 0:
            return False
        self._detours -= 1
        self.expected = True
        return True

    def waited(self, verdict: Verdict, seconds: float) -> None:
        """Learn from a claim that waited at the turnstile for this long."""
        self._expect(verdict)
        self.rest_seconds = min(BLOCKED_SECONDS, seconds) if self.expected else 0.0

    def tried(self, verdict: Verdict, *, found: bool, beside_ends: bool) -> None:
        """Learn from a direct claim; `beside_ends`: it stored completions, too."""
        self._expect(verdict)
        self.rest_seconds = 0.0
        if not beside_ends:
            return
        if self.expected:
            self._detours = self._longest
            self._longest = min(MOST_DETOURS, 2 * self._longest)
        elif found:
            self._longest = max(1, self._longest // 2)

    def _expect(self, verdict: Verdict) -> None:
        # behind a pooler, each waiting worker would occupy one of its connections
        self.expected = verdict is Verdict.CONTENDED and not get_settings().pooler


class NextClaim:
    """Decides when one claim loop claims, and wakes other workers for the jobs it leaves."""

    def __init__(self, claimer: Claimer, claimed_jobs: ClaimedJobs, *, until_empty: bool) -> None:
        self.due_at = time.monotonic()
        """When the next claim is due (monotonic time); sooner with something to store."""
        self.idle_rounds = 0
        """Claims in a row that found nothing ready."""
        self.sleep = Sleep(
            claimer.worker_id,
            claimer.surveys,
            until_empty=until_empty,
            dispatches=claimer.filters.executor is not None,
        )
        self.turnstile = Turnstile()
        self._claimer = claimer
        self._claimed_jobs = claimed_jobs
        self._until_empty = until_empty
        self._was_notified = False
        self._found_at = 0.0

    def hurry(self, at: float = 0.0) -> None:
        """Claim at a time (monotonic) at the latest; at once unless one is given."""
        self.due_at = min(self.due_at, at)

    def put_off(self, seconds: float) -> None:
        """Claim no sooner than after this time: a statement has failed."""
        self.due_at = time.monotonic() + seconds

    def notified(self) -> None:
        """Claim at once: an enqueuer has ended this worker's sleep."""
        self.sleep.notified()
        self._claimer.places.notified()
        self._claimer.surveys.hurry()
        self._was_notified = True
        self.hurry()

    def released(self) -> None:
        """Claim at once: gates have released jobs, which --until-empty waits for."""
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
        """Learn from a claim that was sent at `began` and answered at `now`."""
        was_notified, self._was_notified = self._was_notified, False
        if answer.jobs:
            self.idle_rounds = 0
            self._found_at = now
            self.sleep.found_work(connection)
            if request.is_filled_by(answer.jobs):
                self._wake_another(connection, answer, now)
        self.due_at = now + self._pause(connection, verdict, request, was_notified, began, now)
        if self._was_notified:  # behind the answer to a statement of this method
            self.due_at = now

    def _pause(
        self,
        connection: Connection,
        verdict: Verdict,
        request: ClaimRequest,
        was_notified: bool,
        began: float,
        now: float,
    ) -> float:
        is_for_others = request.room_threads == 0 or self._claimer.leaves_jobs
        if verdict is Verdict.BLOCKED and was_notified and is_for_others:
            # a job for a thread of another worker, or one that this one cannot run; without the
            # pause, two such workers would wake each other in turn
            self.sleep.wake_another(connection, now)
            return SEARCH_SECONDS
        if self._is_full_for(verdict):
            return SEARCH_SECONDS
        if verdict is Verdict.AGAIN:
            # the next ready job is probably a coroutine, too; a completion claims anyway
            is_full = self._claimer.expects_coroutines and not self._claimed_jobs.room()[1]
            return GROUP_SECONDS if is_full else 0.0
        if verdict is Verdict.LATER:
            return GROUP_SECONDS
        if verdict is Verdict.CONTENDED:
            return max(self._claimer.wait_seconds, self.turnstile.rest_seconds)
        return self._idle_pause(connection, began, now, blocked=verdict is Verdict.BLOCKED)

    def _is_full_for(self, verdict: Verdict) -> bool:
        """Whether another claim would bring nothing urgent: no thread is free.

        Either only coroutines have room, and none have come lately, or only claiming ahead, and
        other workers hold the queues. A completion claims anyway.
        """
        if self._claimed_jobs.free_threads() or self._claimer.expects_coroutines:
            return False
        if verdict in (Verdict.AGAIN, Verdict.LATER):
            return self._claimed_jobs.room()[0] == 0
        return verdict is Verdict.CONTENDED

    def _idle_pause(
        self, connection: Connection, began: float, now: float, *, blocked: bool
    ) -> float:
        if self._until_empty and self._claimer.surveys.is_active:
            self._claimer.surveys.leave()  # it ends when there is nothing anywhere
            return 0.0
        if not blocked:
            self.idle_rounds += 1
        elif self._until_empty and not len(self._claimed_jobs):
            # the ready jobs are not for this worker if the next look at all of them says the same
            self.idle_rounds += 1
            self._claimer.places.forget_blocked()
        busy = len(self._claimed_jobs) > 0
        look = self.sleep.next_look(connection, now, looked_at=began, blocked=blocked, busy=busy)
        if not blocked:
            return self.sleep.seconds if look is None else look
        if look is not None:
            return min(look, self._claimer.wait_seconds)
        return self._blocked_pause(now)

    def _blocked_pause(self, now: float) -> float:
        """Return the pause of a sleeping worker before it checks full queues again.

        A slot that becomes free is used at once by the worker whose job has ended, and a
        notification ends the sleep. All workers together look for other changes every
        BLOCKED_SECONDS, or more often after finding jobs. Each of them looks every SLEEP_SECONDS.
        """
        wait, idle = self._claimer.wait_seconds, now - self._found_at
        is_due_sooner = wait < BLOCKED_SECONDS and idle < SLEEP_SECONDS
        if not self.sleep.can_be_notified or is_due_sooner:
            return wait  # the worker that made the last starts of a rate makes the next one in time
        longest = self.sleep.workers * min(BLOCKED_SECONDS, idle / 16)
        return max(wait, longest * random.uniform(0.75, 1.0))

    def _wake_another(self, connection: Connection, answer: Exchange, now: float) -> None:
        ended = len(answer.finished) + len(answer.rescheduled)
        # nothing has changed for others when jobs only follow those that have ended
        if len(answer.jobs) > ended and any(job.slots_left > 0 for job in answer.jobs):
            self.sleep.wake_another(connection, now)
