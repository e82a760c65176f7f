"""The supervisor's proof that its children live: an advisory lock for each, on one connection.

When the supervisor dies, the server frees the locks and other supervisors rescue the jobs. When it
loses the connection, it takes the locks again. If it cannot, it kills its children before their
jobs could be rescued. The connection may be lost silently, so only an answer of the server proves
that the locks were held when the query was sent. LeaseWatch, in a thread of its own, sends queries
and kills the children in time while the supervisor is busy.

No jobs are rescued while a server is down or starting up, and for SETTLE_SECONDS after its start.
When another server takes over, which may have been running before, all supervisors have to connect
again. So a supervisor rescues no jobs for SETTLE_SECONDS after it connected, if the first attempt
failed or the server has been a standby.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import inf
from typing import Any

import psycopg
from django.db import connections

from ...conf import get_settings
from ...operations.rescue import LOOK_SECONDS, SETTLE_SECONDS
from ...queries import rescue as queries
from ...queries import workers as worker_queries
from ...queries.workers import Orders
from ..connection import (
    PROBE_SECONDS,
    WorkerConnection,
    connect,
    end_session,
    is_direct,
    is_rejecting,
)
from ..waiting import next_tick
from .addresses import list_addresses

logger = logging.getLogger("django_tenantqueue")

CONNECT_SECONDS = 2
"""Longest attempt to connect."""
KEEPALIVE = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 9000,
}
"""Of the supervisor's connections. A dead path is given up 9 s after the last answer."""
SERVER_KEEPALIVE = {"idle": 8, "interval": 2, "count": 3}
"""The server frees the locks 14 s after the last sign of the client's machine."""
RETRY_SECONDS = PROBE_SECONDS / 4
"""Pause between two attempts to connect again."""
LEASE_SECONDS = LOOK_SECONDS * 0.9
"""The children are killed this long after the last proof of their locks. Others rescue later."""
ANSWER_SECONDS = 1.5
"""A connection that has not answered for this time is lost."""

SIGNS_OF_STANDBY = (
    "is a standby",
    "session is read-only",
    "hot standby mode",
    "system is not accepting connections",
)
SIGNS_OF_RESTART = (
    "starting up",
    "shutting down",
    "recovery mode",
    "not yet accepting",
)
SIGNS_OF_ABSENCE = (
    "refused",
    "No such file",  # of a socket
    "closed the connection unexpectedly",  # before it answered: it is going down
)
"""A proxy that has lost a running server answers in the same way."""

assert PROBE_SECONDS + ANSWER_SECONDS < LEASE_SECONDS < LOOK_SECONDS < SETTLE_SECONDS


class Unreachable(psycopg.OperationalError):
    """None of the addresses that were tried is that of a server that can be written to.

    `errors`: the place and the error of each. `complete`: all addresses were tried.
    """

    def __init__(
        self, errors: list[tuple[dict[str, str], psycopg.Error]], *, complete: bool
    ) -> None:
        super().__init__("\n".join(str(error) for _, error in errors))
        self.errors = errors
        self.complete = complete


class Lease:
    """Holds the locks of one supervisor's children."""

    def __init__(self, alias: str, name: str) -> None:
        self.alias = alias
        self.connection: WorkerConnection | None = None
        self.uses_locks = not get_settings().pooler
        self._name = name
        self._held: set[int] = set()
        self._missing: set[int] = set()
        self._lost_at: float | None = None
        self._proved_at = time.monotonic()
        """When the last query that the server has answered was sent."""
        self._is_direct = False
        """No proxy stood between this process and the server."""
        self._backend_pid = 0
        self._changed_at: float | None = None
        self._is_first = True
        """Nothing was tried yet."""
        self._turn = 0
        """The address to begin with, by its number."""
        self._probe_at = 0.0

    @property
    def is_overdue(self) -> bool:
        """Whether the children must be dead: their locks may have been free for LEASE_SECONDS.

        Behind a pooler there are no locks.
        """
        return self.uses_locks and bool(self._held) and self.unproved_seconds > LEASE_SECONDS

    @property
    def seconds_to_overdue(self) -> float:
        """How long the children may live without another proof; LEASE_SECONDS if they are late."""
        left = LEASE_SECONDS - self.unproved_seconds
        return left if left > 0.0 else LEASE_SECONDS

    @property
    def unproved_seconds(self) -> float:
        """How long ago the locks were held for certain."""
        return time.monotonic() - self._proved_at

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Let no other thread use the connection in this block."""
        with self.connection.lock if self.connection is not None else nullcontext():
            yield

    def forgive(self) -> None:
        """Count from now on: this process was stopped, and could not send queries."""
        self._proved_at = time.monotonic()

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

    def open(self) -> WorkerConnection:
        """Return the connection, opened and with all locks held. Raises psycopg.Error."""
        if self.connection is None or self._is_broken:
            self.connection = None
            is_first, self._is_first = self._is_first, False
            if not is_first:
                self._note_loss("a statement has found it broken")
            connection = self._connect()
            if self.uses_locks:
                self._take_over(connection, is_first)
            self.connection = connection
            if self._lost_at is not None and not is_first:
                lost_for = time.monotonic() - self._lost_at
                logger.info("the supervisor reconnected after %.1f s", lost_for)
            self._lost_at = None
        return self.connection

    def _take_over(self, connection: WorkerConnection, is_first: bool) -> None:
        """Take the locks of the children on a new connection."""
        if not is_first or queries.has_followed(connection):
            self._changed_at = time.monotonic()
        for name, value in SERVER_KEEPALIVE.items():
            connection.execute(f"SET tcp_keepalives_{name} = {value}".encode(), prepare=False)
        longest = b"%d" % (750 * ANSWER_SECONDS)  # milliseconds: a probe waits for a statement
        connection.execute(b"SET statement_timeout = " + longest, prepare=False)
        self._is_direct = is_direct(connection)
        if not is_first:
            end_session(connection, self._backend_pid)
        self._backend_pid = connection.backend_pid
        sent_at = time.monotonic()
        self._missing = set(self._held)
        self._take_missing(connection)
        if self._held:
            queries.renew_leases(connection, sorted(self._held))
        self._proved_at = sent_at

    def _connect(self) -> WorkerConnection:
        """Try the addresses of the server, only one when the children must be dead already.

        The next attempt continues after it. Raises Unreachable.
        """
        places = list_addresses(connections[self.alias].get_connection_params())
        errors: list[tuple[dict[str, str], psycopg.Error]] = []
        while len(errors) < len(places) and not (errors and self.is_overdue):
            place = places[self._turn % len(places)]
            try:
                connection = connect(
                    self.alias,
                    f"tenantqueue {self._name} supervisor",
                    answer_seconds=ANSWER_SECONDS,
                    **KEEPALIVE,
                    **place,
                )
            except psycopg.OperationalError as error:
                errors.append((place, error))
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

    def cancel(self, worker_id: int) -> None:
        """Undo what register() did, for a child that could not be started."""
        self.end(worker_id)
        worker_queries.delete_worker(self.open(), worker_id)

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
        was_open = self.connection is not None
        try:
            return self._probe(self.open())
        except psycopg.Error as error:
            if not self._note(error):
                return []
            self._probe_at = now if was_open else now + RETRY_SECONDS
            if not was_open and self._is_down(error):
                self._proved_at = now  # no other supervisor can rescue
            return []

    def prove(self) -> None:
        """Send a query if the last proof is old. May be called in any thread."""
        connection = self.connection
        if connection is None or self._is_broken or self.unproved_seconds < PROBE_SECONDS * 1.25:
            return
        if LEASE_SECONDS - ANSWER_SECONDS < self.unproved_seconds <= LEASE_SECONDS:
            return  # the answer could come too late to kill in time
        try:
            self._probe(connection)
        except psycopg.Error as error:
            if connection is self.connection:  # else its owner has noticed, and connected again
                self._note(error)

    def _probe(self, connection: WorkerConnection) -> list[Orders]:
        sent_at = time.monotonic()
        try:
            orders = worker_queries.read_orders(connection, sorted(self._held))
            self._take_missing(connection)
        except psycopg.Error as error:
            if not connection.closed and _is_of_statement(error):
                self._proved_at = max(self._proved_at, sent_at)
            raise
        self._proved_at = max(self._proved_at, sent_at)
        return orders

    def _note(self, error: psycopg.Error) -> bool:
        """Log an error of a probe once; return whether the connection is lost."""
        if self.connection is not None and not self._is_broken and _is_of_statement(error):
            # a statement was cancelled, say: the locks are held all the same
            logger.warning("a statement of the supervisor failed, retrying: %s", error)
            return False
        self._note_loss(error)
        return True

    def _note_loss(self, why: object) -> None:
        if self._lost_at is None:
            self._lost_at = time.monotonic()
            logger.warning("the supervisor lost its database connection: %s", why)

    def _is_down(self, error: psycopg.Error) -> bool:
        """Whether the server accepts no connections: it is stopped, starting up or shutting down.

        Of several hosts one does and all the others do, too, or are standbys.
        """
        errors: list[tuple[dict[str, str], psycopg.Error]] = [({}, error)]
        if isinstance(error, Unreachable):
            errors = error.errors
            if not error.complete:
                return False
        signs = SIGNS_OF_RESTART + (SIGNS_OF_ABSENCE if self._is_direct else ())
        down = {_host(place) for place, one in errors if _has(one, signs)}
        others = {_host(place): place for place, _ in errors if _host(place) not in down}
        if down or len(others) > 1:
            standbys = {_host(place) for place, one in errors if _has(one, SIGNS_OF_STANDBY)}
            return bool(down) and others.keys() <= standbys
        if _has(error, SIGNS_OF_ABSENCE):
            return False
        # in words of another language: libpq knows the code, and psycopg does not. It takes up to
        # CONNECT_SECONDS, in which no thread of this process can kill
        if self.unproved_seconds + CONNECT_SECONDS > LEASE_SECONDS:
            return False
        ((_, place),) = others.items()
        return is_rejecting(self.alias, CONNECT_SECONDS, **place)

    def close(self) -> None:
        """End the connection, and with it the locks."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def _host(place: dict[str, str]) -> str:
    return place.get("host", "")


def _has(error: psycopg.Error, signs: tuple[str, ...]) -> bool:
    return any(sign in str(error) for sign in signs)


def _is_of_statement(error: psycopg.Error) -> bool:
    """Whether the session survives: the error is the server's, and not of its shutdown."""
    return error.sqlstate is not None and not error.sqlstate.startswith("57P")
