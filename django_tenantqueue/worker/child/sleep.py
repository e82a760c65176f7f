"""Sleeping and waking: how an idle worker is notified of new work.

A worker that found nothing announces its sleep (a timestamp in its row, committed), claims once
more, and waits for a notification. An enqueuer looks for sleepers after its commit, clears the
announcement of one and notifies it. So either the worker's last claim saw the job, or the enqueuer
saw the announcement. See docs/explanation/sleeping.md.
"""

from __future__ import annotations

import random
import time
from typing import Any

import psycopg

from ...conf import get_settings
from ...operations import places
from ...operations.enqueue import QUICK_SECONDS
from ...operations.surveys import Surveys
from ...queries import workers as queries
from ...queries.enqueue import wake_any_workers
from .claim_ahead import AHEAD_SECONDS

SLEEP_SECONDS = 10.0
"""Longest sleep of an idle worker that can be notified."""
IDLE_SECONDS = SLEEP_SECONDS * 6
"""How long an announcement of an idle worker holds."""
BUSY_SECONDS = SLEEP_SECONDS * 2.5
"""The same of a worker that runs jobs: it may have no thread for another job.

An idle worker renews its announcement so early that it ends later than all of these. Enqueuers
notify the workers whose announcements end last.
"""
RENEWED_AT = {IDLE_SECONDS: BUSY_SECONDS + SLEEP_SECONDS, BUSY_SECONDS: BUSY_SECONDS / 2}
"""How much of an announcement is left at most when the next look renews it."""
QUICK_LOOKS = (QUICK_SECONDS, QUICK_SECONDS * 1.5)
"""Pauses before the looks that precede a sleep: a short sleep would cost two commits."""
SETTLE_SECONDS = QUICK_SECONDS * 2.5
"""How long after announcing its sleep a worker looks once more.

A single INSERT in autocommit mode looks for sleepers in its own snapshot, and does no more if it
took at most QUICK_SECONDS. If it missed this worker's announcement, its snapshot is older. So it
committed at most QUICK_SECONDS after the announcement, and this look sees its job.
"""
DISPATCH_SECONDS = places.DISPATCH_SECONDS * 2
"""Pause between two polls of an idle dispatcher, which is not notified."""


class Sleep:
    """The sleep of one worker process."""

    def __init__(
        self,
        worker_id: int,
        surveys: Surveys,
        *,
        until_empty: bool = False,
        dispatches: bool = False,
    ) -> None:
        settings = get_settings()
        self.workers = 1
        """The number of workers when this one announced its sleep, at most 40."""
        self.can_be_notified = (
            settings.notify and not settings.pooler and not until_empty and not dispatches
        )
        self._dispatches = dispatches
        self._worker_id = worker_id
        self._surveys = surveys
        self._until = 0.0
        self._settle_at = 0.0
        self._wake_at = 0.0
        self._looks = 0
        """Looks in a row that found nothing, before the sleep."""
        self._listening = False
        self._is_announced = False
        """The worker's row may say that it sleeps."""
        self._was_notified = False

    @property
    def seconds(self) -> float:
        """Maximum wait for work. It varies, to spread the polls of a fleet."""
        if self._dispatches:
            return DISPATCH_SECONDS
        longest = SLEEP_SECONDS if self.can_be_notified else get_settings().poll_interval
        return longest * random.uniform(0.8, 1.0)

    def next_look(
        self,
        connection: psycopg.Connection[Any],
        now: float,
        *,
        looked_at: float | None = None,
        blocked: bool = False,
        busy: bool = False,
    ) -> float | None:
        """Return the seconds to wait before looking again for work that may just have come.

        None: the worker sleeps, announced, and need not look before `seconds` have passed.
        `looked_at`: when the last look began, None for `now`. `blocked`: there is work, in queues
        that are full or paused, so quick looks gain nothing. `busy`: this worker runs jobs.
        """
        if looked_at is None:
            looked_at = now
        seconds = BUSY_SECONDS if busy else IDLE_SECONDS
        is_asleep = self._until > now
        if not blocked and not is_asleep and self._looks < len(QUICK_LOOKS):
            self._looks += 1
            return QUICK_LOOKS[self._looks - 1]
        if not self.can_be_notified:
            return None
        if not is_asleep:
            if (most_pause := self._surveys.most_pause) is not None:
                self._looks = min(self._looks + 1, 20)
                return min(most_pause, QUICK_LOOKS[0] * 1.5**self._looks)
            self._announce(connection, now, seconds)
            return SETTLE_SECONDS if blocked else 0.0
        if self._settle_at > looked_at:
            return max(0.0, self._settle_at - now)
        if self._until < now + RENEWED_AT[seconds] and not self._renew(connection, now, seconds):
            return 0.0
        return None

    def _announce(self, connection: psycopg.Connection[Any], now: float, seconds: float) -> None:
        if not self._listening:
            queries.listen(connection, self._worker_id)
            self._listening = True
        self._was_notified = False
        self.workers = queries.sleep_worker(connection, self._worker_id, seconds)
        if not self._was_notified:  # before the answer was read
            self._is_announced = True
            self._until = now + seconds
            self._surveys.announced()
        self._settle_at = time.monotonic() + SETTLE_SECONDS  # of the commit, which took its time

    def _renew(self, connection: psycopg.Connection[Any], now: float, seconds: float) -> bool:
        """Prolong the announcement, which still holds, so that no further look is due.

        False: an enqueuer has ended it, and its notification is on its way.
        """
        self._was_notified = False
        workers = queries.sleep_worker(connection, self._worker_id, seconds, renew=True)
        if not workers or self._was_notified:
            self.notified()
            return False
        self.workers = workers
        self._until = now + seconds
        return True

    def found_work(self, connection: psycopg.Connection[Any]) -> None:
        """End the announced sleep, so that no enqueuer notifies a busy worker."""
        self._looks = 0
        self._until = 0.0
        if self._is_announced:
            queries.clear_sleep(connection, self._worker_id)
            self._is_announced = False

    def notified(self) -> None:
        """Note that an enqueuer has ended the sleep."""
        self._was_notified = True
        self._is_announced = False
        self._until = 0.0
        self._looks = 0

    def wake_another(self, connection: psycopg.Connection[Any], now: float) -> None:
        """Wake another worker for jobs that this one leaves, at most every AHEAD_SECONDS.

        What it leaves may wait as long as what it has claimed ahead.
        """
        if self.can_be_notified and now >= self._wake_at:
            self._wake_at = now + AHEAD_SECONDS
            wake_any_workers(connection, most=1, worker_id=self._worker_id)

    def retire(self, connection: psycopg.Connection[Any]) -> None:
        """End the sleep for good: this worker drains. Another one takes its last notification."""
        if self.can_be_notified:
            self._until = 0.0
            queries.clear_sleep(connection, self._worker_id)
            wake_any_workers(connection, most=1, worker_id=self._worker_id)
            self.can_be_notified = False

    def reconnected(self) -> None:
        """Restart on another connection.

        The row is unknown: the announcement may still be there, or be there again after a crash.
        """
        self._is_announced = self.can_be_notified
        self._listening = False
        self._until = 0.0
