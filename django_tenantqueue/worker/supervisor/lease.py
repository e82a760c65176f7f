"""The supervisor's proof that its children live: an advisory lock for each, on one connection.

When the supervisor dies, the server frees the locks and other supervisors rescue the jobs. When it
loses the connection, it takes the locks again. If it cannot, it kills its children before their
jobs could be rescued. No jobs are rescued while a server is down or starting up, and for
SETTLE_SECONDS after its start. When another server takes over, which may have been running before,
all supervisors have to connect again. So a supervisor rescues no jobs for SETTLE_SECONDS after it
connected, if the first attempt failed or the server has been a standby.
"""

from __future__ import annotations

import logging
import time
from math import inf
from typing import Any

import psycopg
from django.db import connections

from ...conf import get_settings
from ...operations.rescue import LOOK_SECONDS, SETTLE_SECONDS
from ...queries import rescue as queries
from ...queries import workers as worker_queries
from ...queries.workers import Orders
from ..connection import PROBE_SECONDS, connect, is_rejecting
from ..waiting import next_tick
from .addresses import list_addresses

logger = logging.getLogger("django_tenantqueue")

CONNECT_SECONDS = 2
"""Longest attempt to connect. Halved: a busy server is taken for one that is gone. Doubled: there
is no time for an attempt before others rescue the jobs."""
USER_TIMEOUT = 9
KEEPALIVE = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * USER_TIMEOUT,
}
SERVER_KEEPALIVE = {"idle": 8, "interval": 2, "count": 3}
SERVER_SECONDS = SERVER_KEEPALIVE["idle"] + SERVER_KEEPALIVE["count"] * SERVER_KEEPALIVE["interval"]
"""On a dead path the client gives up USER_TIMEOUT seconds after the first unanswered probe, at most
13 s after the last answer. The server gives up after SERVER_SECONDS. Halved: a short loss of the
network ends all children of a machine. Doubled: jobs of a machine that is gone start later."""
RETRY_SECONDS = PROBE_SECONDS / 4
"""Pause between two attempts to connect again."""
GRACE_SECONDS = (LOOK_SECONDS - CONNECT_SECONDS) * 0.8
"""Time after the loss of the connection at which the children are killed. An attempt to connect
that begins before ends at most CONNECT_SECONDS later. Halved: a server that restarts quickly costs
more running jobs. Doubled: their jobs could be rescued while they run."""

SIGNS_OF_STANDBY = (
    "is a standby",
    "session is read-only",
    "hot standby mode",
    "system is not accepting connections",
)
SIGNS_OF_RESTART = (
    "refused",
    "No such file",  # of a socket
    "starting up",
    "shutting down",
    "recovery mode",
    "not yet accepting",
    "closed the connection unexpectedly",  # before it answered: it is going down
)

assert GRACE_SECONDS + CONNECT_SECONDS < LOOK_SECONDS < SETTLE_SECONDS
assert PROBE_SECONDS < LOOK_SECONDS
assert (
    PROBE_SECONDS + USER_TIMEOUT + GRACE_SECONDS + CONNECT_SECONDS < SERVER_SECONDS + LOOK_SECONDS
)


class Unreachable(psycopg.OperationalError):
    """None of the addresses that were tried is that of a server that can be written to.

    `errors`: the host and the error of each. `complete`: all addresses were tried.
    """

    def __init__(self, errors: list[tuple[str, psycopg.Error]], *, complete: bool) -> None:
        super().__init__("\n".join(str(error) for _, error in errors))
        self.errors = errors
        self.complete = complete


class Lease:
    """Holds the locks of one supervisor's children."""

    def __init__(self, alias: str, name: str) -> None:
        self.alias = alias
        self.connection: psycopg.Connection[Any] | None = None
        self.uses_locks = not get_settings().pooler
        self._name = name
        self._held: set[int] = set()
        self._missing: set[int] = set()
        self._lost_at: float | None = None
        self._changed_at: float | None = None
        self._is_first = True
        """Nothing was tried yet."""
        self._turn = 0
        """The address to begin with, by its number."""
        self._probe_at = 0.0

    @property
    def is_overdue(self) -> bool:
        """Whether the locks have been lost for longer than the children may live."""
        return bool(self._held) and self._is_late

    @property
    def _is_late(self) -> bool:
        return self._lost_at is not None and time.monotonic() - self._lost_at > GRACE_SECONDS

    @property
    def seconds_since_change(self) -> float:
        """How long ago at least another server took over; inf: there was none but this one."""
        return inf if self._changed_at is None else time.monotonic() - self._changed_at

    @property
    def seconds_to_check(self) -> float:
        """How long check() would do nothing."""
        return 0.0 if self._is_broken else max(0.0, self._probe_at - time.monotonic())

    @property
    def _is_broken(self) -> bool:
        """Whether a statement has found that the connection is gone; open() forgets it."""
        connection = self.connection
        return connection is not None and (connection.closed or connection.broken)

    def fileno(self) -> int | None:
        """Return what can be read from when the server has ended the connection, for select()."""
        connection = self.connection
        return None if connection is None or connection.closed else connection.fileno()

    def open(self) -> psycopg.Connection[Any]:
        """Return the connection, opened and with all locks held. Raises psycopg.Error."""
        if self.connection is None or self._is_broken:
            self.connection = None
            is_first, self._is_first = self._is_first, False
            if not is_first and self._lost_at is None:
                self._lost_at = time.monotonic()
            connection = self._connect()
            if self.uses_locks:
                if not is_first or queries.has_followed(connection):
                    self._changed_at = time.monotonic()
                for name, value in SERVER_KEEPALIVE.items():
                    connection.execute(
                        f"SET tcp_keepalives_{name} = {value}".encode(), prepare=False
                    )
                self._missing = set(self._held)
                self._take_missing(connection)
            self.connection = connection
            self._lost_at = None
        return self.connection

    def _connect(self) -> psycopg.Connection[Any]:
        """Try the addresses of the server, none after the grace but one.

        The next attempt goes on behind it. Raises Unreachable.
        """
        places = list_addresses(connections[self.alias].get_connection_params())
        errors: list[tuple[str, psycopg.Error]] = []
        while len(errors) < len(places) and not (errors and self._is_late):
            place = places[self._turn % len(places)]
            try:
                connection = connect(
                    self.alias, f"tenantqueue {self._name} supervisor", **KEEPALIVE, **place
                )
            except psycopg.OperationalError as error:
                errors.append((place.get("host", ""), error))
                self._turn += 1
            else:
                self._turn = 0
                return connection
        raise Unreachable(errors, complete=len(errors) == len(places))

    def _take_missing(self, connection: psycopg.Connection[Any]) -> None:
        """Take the locks that the server still keeps for the connection that was lost."""
        for worker_id in sorted(self._missing):
            if queries.hold_lease(connection, worker_id):
                self._missing.discard(worker_id)

    def register(self, worker: worker_queries.NewWorker) -> int:
        """Make the row of a child about to be started and take its lock; return its id."""
        connection = self.open()
        worker_id = worker_queries.insert_worker(connection, worker, leased=self.uses_locks)
        if self.uses_locks:
            queries.hold_lease(connection, worker_id)
        self._held.add(worker_id)
        return worker_id

    def end(self, worker_id: int) -> None:
        """Let the lock of a child go whose jobs are taken care of."""
        self._held.discard(worker_id)
        self._missing.discard(worker_id)
        if self.uses_locks and self.connection is not None and not self.connection.closed:
            queries.end_lease(self.connection, worker_id)

    @property
    def is_held(self) -> bool:
        """Whether the connection stood when it was last tried."""
        return self._lost_at is None

    def check(self, *, at_once: bool = False) -> list[Orders]:
        """Probe the connection every PROBE_SECONDS; take the locks again when it was lost.

        A probe reads the orders of operators for the children, and returns them.
        """
        now = time.monotonic()
        if now < self._probe_at and not (at_once or self._is_broken):
            return []
        self._probe_at = next_tick(now, PROBE_SECONDS)
        connection, was_held = self.connection, self.is_held
        try:
            connection = self.open()
            orders = worker_queries.read_orders(connection, sorted(self._held))
            self._take_missing(connection)
            return orders
        except psycopg.Error as error:
            if self.connection is not None and not self._is_broken and _is_of_statement(error):
                logger.warning("the supervisor's connection is tried again: %s", error)
                return []  # a statement was cancelled, say: the locks are held all the same
            if was_held:
                logger.warning("the supervisor lost its connection: %s", error)
            if self._lost_at is None:
                self._lost_at = now
            was_open = connection is not None
            self._probe_at = now if was_open else now + RETRY_SECONDS
            if not was_open and self._is_down(error, self._lost_at):
                self._lost_at = time.monotonic()  # no other supervisor can rescue
            return []

    def _is_down(self, error: psycopg.Error, lost_at: float) -> bool:
        """Whether the server accepts no connections: it is stopped, starting up or shutting down.

        Of several hosts one does and all the others do, too, or are standbys.
        """
        errors = [("", error)]
        if isinstance(error, Unreachable):
            errors = error.errors
            if not error.complete:
                return False
        down = {host for host, one in errors if _has(one, SIGNS_OF_RESTART)}
        others = {host for host, _ in errors} - down
        if down or len(others) > 1:
            standbys = {host for host, one in errors if _has(one, SIGNS_OF_STANDBY)}
            return bool(down) and others <= standbys
        # in words of another language: libpq knows the code, and psycopg does not. It takes up to
        # CONNECT_SECONDS, for which there is no time after an attempt that took as long
        lost_for = time.monotonic() - lost_at
        return lost_for < GRACE_SECONDS and is_rejecting(self.alias, CONNECT_SECONDS)

    def close(self) -> None:
        """End the connection, and with it the locks."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def _has(error: psycopg.Error, signs: tuple[str, ...]) -> bool:
    return any(sign in str(error) for sign in signs)


def _is_of_statement(error: psycopg.Error) -> bool:
    """Whether the session goes on: the error is the server's, and none of its being shut down."""
    return error.sqlstate is not None and not error.sqlstate.startswith("57P")
