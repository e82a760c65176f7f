"""A thread beside a supervisor that may have to wait for the database.

While the supervisor is busy, it sends queries to the server, kills the children in time when no
answer comes, and ends a wait that would never end.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from ..connection import PROBE_SECONDS
from .lease import ANSWER_SECONDS, LEASE_SECONDS, Lease

logger = logging.getLogger("django_tenantqueue")

LOOK_SECONDS = PROBE_SECONDS / 2
"""Pause between two checks of the lease."""
STOPPED_SECONDS = LEASE_SECONDS / 2
"""A thread that did not run for this time belongs to a process that was stopped."""
BUSY_SECONDS = ANSWER_SECONDS * 2
"""A statement that takes longer is looked up on the server."""

STATE = "SELECT coalesce(state, 'active') FROM pg_stat_activity WHERE pid = %s"


class LeaseWatch:
    """Watches one lease, and the Django connection on which its owner works."""

    def __init__(
        self,
        lease: Lease,
        kill: Callable[[], None],
        works_on: BaseDatabaseWrapper | None = None,
    ) -> None:
        """`kill` is called while children must be killed, again and again, in the thread."""
        self._lease = lease
        self._kill = kill
        self._works_on = works_on
        self._looked_at = time.monotonic()
        self._busy: tuple[object, float, int] | None = None
        """A connection that waits for an answer, since when, and how often it was found idle."""
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tenantqueue-lease", daemon=True)

    def start(self) -> None:
        """Begin to look. Signals are left to the calling thread."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        """Look no more."""
        self._is_closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_closing.wait(min(LOOK_SECONDS, self._lease.seconds_to_overdue)):
            try:
                self.run_once()
            except Exception:
                logger.exception("checking the supervisor's connection failed")

    def run_once(self) -> None:
        """Look once."""
        now = time.monotonic()
        if now - self._looked_at > STOPPED_SECONDS:
            self._lease.forgive()
        self._lease.prove()
        self._kill()
        if self._works_on is not None:
            self._end_wait(self._works_on, time.monotonic())
        self._looked_at = time.monotonic()  # last: to wait for the server is not to be stopped

    def _end_wait(self, wrapper: BaseDatabaseWrapper, now: float) -> None:
        """Cut off a connection on which the owner waits for an answer that cannot come.

        The server no longer has it, or it is idle there at two looks in a row, or the lease is lost
        and its owner has to connect again.
        """
        raw = wrapper.connection
        if raw is None or raw.closed or raw.pgconn.transaction_status != TransactionStatus.ACTIVE:
            self._busy = None
            return
        if self._busy is None or self._busy[0] is not raw:
            self._busy = raw, now, 0
        _, since, idle = self._busy
        if not self._lease.is_held:
            if now - since > PROBE_SECONDS:
                self._cut(raw, now - since)
        elif now - since > BUSY_SECONDS:
            idle = 0 if self._is_at_work(raw) else idle + 1
            self._busy = raw, since, idle
            if idle > 1:
                self._cut(raw, now - since)

    def _is_at_work(self, raw: psycopg.Connection[object]) -> bool:
        connection = self._lease.connection
        try:
            if connection is None:
                return True
            rows = connection.execute(STATE, [raw.info.backend_pid], prepare=False).fetchall()
        except psycopg.Error:
            return True
        return rows == [("active",)]

    def _cut(self, raw: psycopg.Connection[object], seconds: float) -> None:
        self._busy = None
        logger.warning(
            "the database has not answered the maintenance for %.1f s: closing its connection",
            seconds,
        )
        # its owner may close it at this moment
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(raw.fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)
