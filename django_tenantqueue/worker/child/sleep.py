"""Sleeping and waking: how an idle worker hears of new work without asking for it.

A worker that found nothing announces its sleep (a timestamp in its row, committed), claims once
more, and waits for a notification. An enqueuer looks for sleepers after its commit, clears one's
announcement and notifies it. So either the worker's last claim saw the job, or the enqueuer saw
the announcement.
"""

from __future__ import annotations

import logging
import random
import time
from typing import Any

import psycopg

from ...conf import get_settings
from ...queries import workers as queries
from ...queries.enqueue import wake_any_workers

logger = logging.getLogger("django_tenantqueue")

SLEEP_SECONDS = 10.0
"""How long an idle worker that can be notified sleeps at most before it looks for work."""
ANNOUNCED_SECONDS = 60.0
"""How long an announcement of a sleep holds, unless it is made anew."""
RENEW_SECONDS = 15.0
"""It is when that much is left of it: nobody wakes a worker whose announcement has run out."""
QUICK_LOOKS = (0.002, 0.003)
"""Pauses before the looks that precede a sleep: under load there is soon more to claim, and two
commits for each short sleep would cost more than a few looks."""
SETTLE_SECONDS = 0.005
"""How long after announcing its sleep a worker looks once more.

A single INSERT in autocommit mode looks for sleepers in its own snapshot, and leaves it at that
when it took at most QUICK_SECONDS (operations/enqueue.py). If it missed this worker's announcement,
its snapshot is older than that, so it had committed by QUICK_SECONDS after it: this look sees its
job.
"""
SILENT_SECONDS = 1.0
"""How long a worker that was woken in vain announces no sleep. It looks for work meanwhile."""
VAIN_LOOK_SECONDS = 0.1
"""How often it does."""
WAKE_SECONDS = 0.05
"""How often a worker that is full may wake another."""

assert RENEW_SECONDS > SLEEP_SECONDS


class Sleep:
    """The sleep of one worker process."""

    def __init__(self, worker_id: int, *, burst: bool = False) -> None:
        settings = get_settings()
        self.can_be_notified = settings.notify and not settings.pooler and not burst
        self._worker_id = worker_id
        self._until = 0.0
        self._settle_at = 0.0
        self._wake_at = 0.0
        self._silent_until = 0.0
        self._quick_looks = 0
        self._listening = False
        self._sleeps = 0
        self._is_announced = False
        """The worker's row may say that it sleeps."""
        self._was_notified = False

    @property
    def seconds(self) -> float:
        """How long to wait for work at most.

        It varies, lest a fleet started together ask at once.
        """
        longest = SLEEP_SECONDS if self.can_be_notified else get_settings().poll_interval
        return longest * random.uniform(0.8, 1.0)

    @property
    def number(self) -> int:
        """Which of its sleeps the worker sleeps; 0 when it is awake."""
        return self._sleeps if self._is_announced and self._until > 0.0 else 0

    def next_look(
        self,
        connection: psycopg.Connection[Any],
        now: float,
        *,
        looked_at: float | None = None,
        blocked: bool = False,
    ) -> float | None:
        """Return the seconds to wait before looking again for work that may just have come.

        None: the worker sleeps, announced, and need not look before `seconds` have passed.
        `looked_at`: when the look before began, None for `now`. `blocked`: there is work, in queues
        that are full or paused, so quick looks win nothing.
        """
        if looked_at is None:
            looked_at = now
        if not blocked and self._quick_looks < len(QUICK_LOOKS) and not self._until > now:
            self._quick_looks += 1
            return QUICK_LOOKS[self._quick_looks - 1]
        if not self.can_be_notified:
            return None
        if self._silent_until > now:
            return VAIN_LOOK_SECONDS
        if self._until <= now:
            self._announce(connection, now)
            return SETTLE_SECONDS if blocked else 0.0
        if self._settle_at > looked_at:
            return max(0.0, self._settle_at - now)
        if self._until < now + RENEW_SECONDS and not self._renew(connection, now):
            return 0.0
        return None

    def _announce(self, connection: psycopg.Connection[Any], now: float) -> None:
        if not self._listening:
            queries.listen(connection, self._worker_id)
            self._listening = True
        self._was_notified = False
        queries.sleep_worker(connection, self._worker_id, ANNOUNCED_SECONDS)
        if not self._was_notified:  # before the answer was read
            self._is_announced = True
            self._until = now + ANNOUNCED_SECONDS
            self._sleeps += 1
        self._settle_at = time.monotonic() + SETTLE_SECONDS  # of the commit, which took its time

    def _renew(self, connection: psycopg.Connection[Any], now: float) -> bool:
        """Prolong the announcement, which still holds, so that no further look is due.

        False: an enqueuer has ended it, and its notification is on its way.
        """
        self._was_notified = False
        holds = queries.sleep_worker(connection, self._worker_id, ANNOUNCED_SECONDS, renew=True)
        if not holds or self._was_notified:
            self.notified()
            return False
        self._until = now + ANNOUNCED_SECONDS
        return True

    def found_work(self, connection: psycopg.Connection[Any]) -> None:
        """End the announced sleep, so that nobody notifies a worker that is busy."""
        self._quick_looks = 0
        self._until = 0.0
        if self._is_announced:
            queries.clear_sleep(connection, self._worker_id)
            self._is_announced = False

    def notified(self) -> None:
        """Note that an enqueuer has ended the sleep."""
        self._was_notified = True
        self._is_announced = False
        self._until = 0.0
        self._quick_looks = 0

    def wake_another(self, connection: psycopg.Connection[Any], now: float) -> None:
        """This worker is full: there may be work for one that sleeps."""
        if now >= self._wake_at:
            self.wake_now(connection, now)

    def wake_now(self, connection: psycopg.Connection[Any], now: float) -> None:
        """Wake another, however lately one was woken."""
        if self.can_be_notified:
            self._wake_at = now + WAKE_SECONDS
            wake_any_workers(connection, most=1, worker_id=self._worker_id)

    def pass_on(self, connection: psycopg.Connection[Any], now: float) -> None:
        """Wake another: what this worker was woken for is not for it.

        It announces no sleep for a while, lest two of them wake each other in turn.
        """
        if self.can_be_notified:
            self._silent_until = now + SILENT_SECONDS
            wake_any_workers(connection, most=1, worker_id=self._worker_id)

    def retire(self, connection: psycopg.Connection[Any]) -> None:
        """Sleep no more: this worker drains, and whoever notified it meant one that claims."""
        if self.can_be_notified:
            self._until = 0.0
            queries.clear_sleep(connection, self._worker_id)
            wake_any_workers(connection, most=1, worker_id=self._worker_id)
            self.can_be_notified = False

    def reconnected(self) -> None:
        """Start anew on another connection.

        What the row says is not known: the announcement stands yet, or stands again after a crash.
        """
        self._is_announced = self.can_be_notified
        self._listening = False
        self._until = 0.0
