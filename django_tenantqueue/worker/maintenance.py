"""Does the fleet's maintenance in whichever supervisor holds the advisory lock."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from django.db import DatabaseError, connections, transaction

from ..operations import maintain
from ..operations.rescue import Coroner
from .lease import Lease

logger = logging.getLogger("django_tenantqueue")

LOCK_KEY = 0x74717565
"""Advisory lock of the one who does the maintenance ("tque")."""
STANDBY_SECONDS = 1.0
"""How often the others try to get the lock."""
CORONER_SECONDS = 0.7
"""How often dead workers are looked for."""
LONGEST_PAUSE = 0.5
"""How often due jobs are looked for at least."""


class Maintenance:
    """Runs each duty when it is due, if this process holds the lock.

    The lock is held on the supervisor's own connection, so it is free as soon as that dies.
    """

    def __init__(self, lease: Lease) -> None:
        self.alias = lease.alias
        self.leading = False
        self._lease = lease
        self._led_on: psycopg.Connection[Any] | None = None
        self._coroner = Coroner()
        self._duties: list[tuple[str, Callable[[str], object], float]] = [
            ("make_history", maintain.make_history, 60.0),
            ("drop_history", maintain.drop_history, 600.0),
        ]
        self._look_at = 0.0
        self._due = dict.fromkeys((name for name, _, _ in self._duties), 0.0)

    def run_once(self) -> float:
        """Do what is due; return the seconds until the next look."""
        try:
            if self._lease.uses_locks:
                return self._round() if self._lead() else STANDBY_SECONDS
            # a pooler gives a session's lock to others: hold it for a transaction only
            with transaction.atomic(using=self.alias):
                return self._round() if self._lead_for_transaction() else STANDBY_SECONDS
        except (psycopg.Error, DatabaseError) as error:
            logger.warning("maintenance is interrupted: %s", error)
            self._let_go()
            return STANDBY_SECONDS

    def _round(self) -> float:
        pause = self._promote()
        now = time.monotonic()
        if self._look_at <= now:
            self._look_at = now + CORONER_SECONDS
            self._coroner.look(self.alias, now)
        for name, duty, interval in self._duties:
            if self._due[name] <= now:
                self._due[name] = now + interval
                self._do(name, duty)
        return pause

    def _lead_for_transaction(self) -> bool:
        with connections[self.alias].cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK_KEY])
            return bool(cursor.fetchone()[0])

    def resign(self) -> None:
        """Let another supervisor do the maintenance: this one is about to stop."""
        if self.leading and self._led_on is not None and not self._led_on.closed:
            with suppress(psycopg.Error):
                self._led_on.execute("SELECT pg_advisory_unlock(%s)", [LOCK_KEY])
        self.leading = False

    def _lead(self) -> bool:
        """Whether this process holds the lock, taking it when it is free."""
        connection = self._lease.open()
        if connection is not self._led_on:
            self.leading, self._led_on = False, connection
        if not self.leading:
            row = connection.execute("SELECT pg_try_advisory_lock(%s)", [LOCK_KEY]).fetchone()
            self.leading = row is not None and bool(row[0])
        return self.leading

    def _promote(self) -> float:
        if maintain.promote(self.alias) >= maintain.PROMOTE_ROWS:
            return 0.0
        next_due = maintain.seconds_to_next_due(self.alias)
        return LONGEST_PAUSE if next_due is None else min(LONGEST_PAUSE, max(0.0, next_due))

    def _do(self, name: str, duty: Callable[[str], object]) -> None:
        try:
            done = duty(self.alias)
            if done:
                logger.info("maintenance %s: %s", name, done)
        except Exception:
            logger.exception("maintenance duty %s failed", name)
            connections[self.alias].close_if_unusable_or_obsolete()

    def _let_go(self) -> None:
        self.leading, self._led_on = False, None
        connections[self.alias].close()

    def close(self) -> None:
        """Close what is open besides the supervisor's own connection."""
        self._let_go()
