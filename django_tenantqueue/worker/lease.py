"""The supervisor's proof that its children live: an advisory lock for each, on one connection.

When the supervisor dies, the server frees the locks and others rescue the jobs. When it loses the
connection it takes the locks again; if it cannot for too long, its children must die before anyone
rescues their jobs. A server that refuses connections is restarting: nobody rescues then, nor for
SETTLE_SECONDS after its start.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import psycopg

from ..conf import get_settings
from ..operations.rescue import LOOK_SECONDS, SETTLE_SECONDS
from ..queries import rescue as queries
from ..queries import workers as worker_queries
from ..queries.workers import Orders
from .connection import connect

logger = logging.getLogger("django_tenantqueue")

KEEPALIVE = {
    "connect_timeout": 2,
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
SERVER_KEEPALIVE = (
    b"SET tcp_keepalives_idle = 8; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3"
)
"""The client gives a dead path up after 9 s, the server after 14 s: the children are gone first."""
PROBE_SECONDS = 1.0
"""How often the connection is tried."""
GRACE_SECONDS = 4.0
"""So long after the loss of the connection the children must be killed.

The server has seen a connection end at once that it ended itself; then connecting again works at
once, too. Otherwise it needs its keepalive time, and others LOOK_SECONDS more.
"""

assert GRACE_SECONDS < SETTLE_SECONDS


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
        self._probe_at = 0.0

    @property
    def is_overdue(self) -> bool:
        """Whether the locks have been lost for so long that the children must die."""
        return (
            bool(self._held)
            and self._lost_at is not None
            and time.monotonic() - self._lost_at > GRACE_SECONDS
        )

    def open(self) -> psycopg.Connection[Any]:
        """Return the connection, opened and with all locks held. Raises psycopg.Error."""
        if self.connection is None or self.connection.closed or self.connection.broken:
            self.connection = None
            connection = connect(self.alias, f"tenantqueue {self._name} supervisor", **KEEPALIVE)
            if self.uses_locks:
                connection.execute(SERVER_KEEPALIVE, prepare=False)
                self._missing = set(self._held)
                self._take_missing(connection)
            self.connection = connection
            self._lost_at = None
        return self.connection

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

    def check(self) -> list[Orders]:
        """Try the connection now and then; take the locks again when it was lost.

        It is tried by reading what operators want of the children, which is returned.
        """
        now = time.monotonic()
        if now < self._probe_at and self._lost_at is None:
            return []
        self._probe_at = now + PROBE_SECONDS
        try:
            connection = self.open()
            orders = worker_queries.read_orders(connection, sorted(self._held))
            self._take_missing(connection)
            return orders
        except psycopg.Error as error:
            if self._lost_at is None:
                logger.warning("the supervisor lost its connection: %s", error)
                self._lost_at = now
            if _is_refused(error):
                self._lost_at = now  # the server is down: nobody can rescue
            return []

    def close(self) -> None:
        """End the connection, and with it the locks."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def _is_refused(error: psycopg.Error) -> bool:
    """Whether the server answered that it is not there, starting up or shutting down."""
    text = str(error)
    return "refused" in text or "starting up" in text or "shutting down" in text


assert LOOK_SECONDS > PROBE_SECONDS
