"""Does the fleet's maintenance in whichever supervisor holds the advisory lock.

The core's tasks and their intervals are below, those of apps in their feature.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from typing import Any

import psycopg
from django.db import Error as DjangoError
from django.db import OperationalError, connections, transaction

from ...batch_sizes import BATCH
from ...features import Duty, Feature, hooks
from ...operations import maintain
from ...operations.gates import Sweep
from ...operations.monitor_control import Feeder
from ...operations.mutes import prune_mutes
from ...operations.rescue import SETTLE_SECONDS, DeadWorkerFinder
from ...operations.session_control import Pruning
from ...operations.unique import KeyPruning
from ...queries.base import LOCK_MILLISECONDS
from ...queries.control import DutyRun, record_duty
from ...queries.locks import KEY, LockKey
from ...queries.workers import take_lead
from ...schema import missing_table
from ...status.display_limits import MESSAGE
from ...text import clean_text
from ...when_due import WhenDue
from ..connection import PROBE_SECONDS
from ..waiting import next_tick
from .lease import Lease

logger = logging.getLogger("django_tenantqueue")

DUTY_LOCK_MILLISECONDS = LOCK_MILLISECONDS * 10
"""Longest wait of a duty for a lock: the same thread looks after the children."""


class Maintenance:
    """Runs each duty when it is due, if this process holds the lock.

    The lock is held on the supervisor's own connection, so it is free as soon as that dies. Behind
    a transaction pooler, where no session keeps a lock, it is held for each round. The last result
    of each duty is stored for operators (`tenantqueue_duty`).
    """

    RECORD_SECONDS = 10.0
    """How often a duty that finds nothing to do is recorded."""

    def __init__(
        self, lease: Lease, name: str = "", *, progress: Callable[[], None] = lambda: None
    ) -> None:
        self.alias = lease.alias
        self.leading = False
        self._lease = lease
        self._name = name
        self._progress = progress
        self._led_on: psycopg.Connection[Any] | None = None
        self._limited: object = None
        """Connection of Django's whose waits for locks are bounded."""
        self._dead_worker_finder = DeadWorkerFinder()
        self._interrupted_at = -inf
        self._missing_tables: dict[str, str] = {}
        """What is said of duties whose table is missing: it is logged once."""
        jobs = WhenDue(
            lambda alias: maintain.seconds_to_next_due(self._look or alias), maintain.promote
        )
        sweep, feeder = Sweep(), Feeder()
        self._duties = [
            Duty("promote", jobs.step, 0.5, pause_after=jobs.pause_after),
            Duty("expire", lambda alias: maintain.expire(alias, self._look), 1.0, BATCH),
            Duty("let_through", lambda alias: sweep.step(alias, self._look), 0.5, BATCH),
            Duty("feed", lambda alias: feeder.step(alias, self._look), 0.5),
            Duty("rescue", self._rescue, 0.5, pause_after=self._until_rescue),
            Duty("prune_sessions", Pruning().step, 30.0),
            Duty("prune_keys", KeyPruning().step, 5.0, BATCH),
            Duty("prune_changes", maintain.prune_changes, 60.0, BATCH),
            Duty("prune_mutes", prune_mutes, 600.0),
            Duty("refresh_statistics", maintain.refresh_statistics, 1.0),
            Duty("thin_figures", maintain.thin_figures, 60.0, BATCH),
            Duty("make_history", maintain.make_history, 60.0),
            Duty("drop_history", maintain.drop_history, 600.0),
        ]
        for duties in hooks(Feature.duties):
            self._duties += duties()

    def run_once(self) -> float:
        """Do what is due; return the seconds until the next look."""
        try:
            if self._lease.uses_locks:
                return self._round() if self._lead() else PROBE_SECONDS
            # a pooler gives a session's lock to others: hold it for a transaction only
            with transaction.atomic(using=self.alias):
                return self._round() if self._lead_for_transaction() else PROBE_SECONDS
        except (psycopg.Error, DjangoError) as error:
            logger.warning("maintenance failed, retrying: %s", error)
            if not self._lease.uses_locks:
                self._interrupted_at = time.monotonic()
            self.close()
            return PROBE_SECONDS

    def _round(self) -> float:
        for duty in self._duties:
            if duty.due_at <= time.monotonic():
                self._do(duty)
                self._progress()  # with a slow database, a round takes minutes
        return max(0.0, min(duty.due_at for duty in self._duties) - time.monotonic())

    def _do(self, duty: Duty) -> None:
        began = time.monotonic()
        # one that breaks the connection each time does not keep the others from their turns
        duty.due_at = next_tick(began, duty.interval_seconds)
        pause, outcome, error = duty.interval_seconds, "", ""
        try:
            with self._bounded_waits():
                done = duty.step(self.alias)
            outcome = clean_text(_told(done)) if done else ""
            pause = _pause_after(duty, done)
            self._missing_tables.pop(duty.name, None)
        except Exception as failure:
            if isinstance(failure, psycopg.Error | DjangoError) and not self._is_usable():
                logger.warning("maintenance task %s lost the database connection", duty.name)
                raise  # perhaps the lock, too: see run_once()
            error = clean_text(f"{type(failure).__name__}: {failure}", MESSAGE)
            if missing := missing_table(failure):
                error = clean_text(missing, MESSAGE)
                if missing not in self._missing_tables.values():
                    logger.error("maintenance task %s failed, retrying: %s", duty.name, missing)
                self._missing_tables[duty.name] = missing
            elif isinstance(failure, psycopg.OperationalError | OperationalError):
                logger.warning("maintenance task %s failed, retrying: %s", duty.name, failure)
            else:
                logger.exception("maintenance task %s failed", duty.name)
        now = time.monotonic()
        duty.due_at = (
            now + pause if pause < duty.interval_seconds else next_tick(now, duty.interval_seconds)
        )
        duty.runs += 1
        if outcome or error or duty.record_at <= now:
            duty.record_at = now + self.RECORD_SECONDS
            self._record(duty, now - began, outcome, error)

    @contextmanager
    def _bounded_waits(self) -> Iterator[None]:
        """Bound the wait for locks: for the session, or behind a pooler for its transaction.

        There a failed duty is undone alone.
        """
        wrapper = connections[self.alias]
        if self._lease.uses_locks:
            wrapper.ensure_connection()
            if wrapper.connection is not self._limited:
                with wrapper.cursor() as cursor:
                    cursor.execute(f"SET lock_timeout = {DUTY_LOCK_MILLISECONDS}")
                self._limited = wrapper.connection
            yield
            return
        with transaction.atomic(using=self.alias):
            with wrapper.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = {DUTY_LOCK_MILLISECONDS}")
            yield

    def _is_usable(self) -> bool:
        wrapper = connections[self.alias]
        if self._led_on is not None and (self._led_on.closed or self._led_on.broken):
            return False
        return wrapper.connection is not None and wrapper.is_usable()

    def _rescue(self, alias: str) -> int:
        """Look for dead workers, but not soon after another server may have taken over.

        It has no locks of others yet. Behind a pooler all heartbeats are old after a longer loss.
        """
        if (
            self._lease.seconds_since_change < SETTLE_SECONDS
            or time.monotonic() - self._interrupted_at < SETTLE_SECONDS
        ):
            self._dead_worker_finder.forget()
            return 0
        return self._dead_worker_finder.look(alias, time.monotonic(), self._look)

    def _until_rescue(self, rescued: object) -> float:
        return self._dead_worker_finder.seconds_to_rescue(time.monotonic())

    @property
    def _look(self) -> psycopg.Connection[Any] | None:
        """The supervisor's own connection, whose statements are planned once.

        A duty that finds nothing costs little more than its planning would. None behind a pooler.
        """
        return self._led_on if self._lease.uses_locks else None

    def _record(self, duty: Duty, seconds: float, outcome: str, error: str) -> None:
        record_duty(
            self.alias,
            DutyRun(
                name=duty.name,
                worker=self._name,
                duration_seconds=seconds,
                outcome=outcome or None,
                runs=duty.runs,
                error=error,
            ),
        )
        duty.runs = 0

    def _lead_for_transaction(self) -> bool:
        with connections[self.alias].cursor() as cursor:
            cursor.execute(f"SELECT pg_try_advisory_xact_lock({KEY})", [LockKey.MAINTENANCE])
            return bool(cursor.fetchone()[0])

    def resign(self) -> None:
        """Let another supervisor do the maintenance: this one is about to stop."""
        if self.leading and self._led_on is not None and not self._led_on.closed:
            with suppress(psycopg.Error):
                self._led_on.execute(
                    f"SELECT pg_advisory_unlock({KEY})".encode(), [LockKey.MAINTENANCE]
                )
        self.leading = False

    def _lead(self) -> bool:
        """Whether this process holds the lock, taking it when it is free."""
        connection = self._lease.open()
        if connection is not self._led_on:
            self.leading, self._led_on = False, connection
        self.leading = self.leading or take_lead(connection, LockKey.MAINTENANCE)
        return self.leading

    def close(self) -> None:
        """Let the lock go, and close Django's connection."""
        self.resign()
        self._led_on = None
        connections[self.alias].close()


def _pause_after(duty: Duty, done: object) -> float:
    """Return the seconds between this step and the next one, at most the interval."""
    if duty.pause_after is not None:
        return min(duty.pause_after(done), duty.interval_seconds)
    if duty.full_step is not None and isinstance(done, int) and done >= duty.full_step:
        return 0.0
    return duty.interval_seconds


def _told(done: object) -> str:
    if isinstance(done, list):
        return ", ".join(map(str, done))
    return str(done)
