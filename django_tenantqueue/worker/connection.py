"""The connection on which a worker process claims and finishes."""

from __future__ import annotations

import logging
import os
import socket
import time
from datetime import UTC, datetime
from typing import Any

import psycopg
from django.db import connections
from psycopg import pq, sql
from psycopg.abc import RV, Buffer, PQGen
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import make_conninfo
from psycopg.types.datetime import TimestamptzLoader

from ..conf import get_settings
from ..queries.base import WORKER_LOCK_MILLISECONDS

logger = logging.getLogger("django_tenantqueue")

PROBE_SECONDS = 1.0
"""How often an idle connection is probed. An end by the server is noticed at once."""
STATEMENT_SECONDS = 20
"""Longest run of a worker's statement."""
ANSWER_SECONDS = STATEMENT_SECONDS * 1.25
"""A connection that is silent for longer is lost, even if a proxy answers its keepalives."""
REMINDER_SECONDS = 60.0
"""How often the log repeats that a connection cannot be made."""
SESSION = b"""
    SET default_transaction_isolation = 'read committed';
    SET TimeZone = 'UTC';
    SET jit = off;
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_bitmapscan = off;
    SET DateStyle = 'ISO';
    SET array_nulls = on;
    SET lock_timeout = %d;
    SET statement_timeout = '%ds'
""" % (WORKER_LOCK_MILLISECONDS, STATEMENT_SECONDS)
"""The settings of the session.

A plan is made once and kept until the server next analyses the table. A plan made for an empty
table would read all of it with sequential scans when 40,000 jobs have come (measured: 1.6 s a claim
instead of 3 ms). This is why the two enable_ settings are off; every statement has an index. The
lock timeout limits the wait for a job row that an operator's open transaction holds.
"""


class UtcLoader(TimestamptzLoader):
    """Reads times by the offset that the server sends with them.

    Django's own loader expects each session to be in UTC, which is not so behind a pooler.
    """

    def load(self, data: Buffer) -> datetime:
        """Return an aware time in UTC."""
        return super().load(data).astimezone(UTC)


class WorkerConnection(psycopg.Connection[Any]):
    """A connection that closes itself when an answer takes longer than `answer_seconds`."""

    answer_seconds = ANSWER_SECONDS
    backend_pid = 0
    """The process id of the server's session, kept after the connection was lost."""

    def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
        """Wait for the answer to a statement."""
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _bounded(self, gen: PQGen[RV]) -> PQGen[RV]:
        began, is_told = time.monotonic(), False
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready:  # psycopg looks ten times a second, from 3.2.11 on
                    seconds = time.monotonic() - began
                    if seconds > self.answer_seconds:
                        self.close()
                        raise psycopg.OperationalError(
                            f"the database has not answered for {seconds:.1f} s"
                        )
                    if seconds > 3.0 and not is_told:
                        is_told = True
                        logger.warning(
                            "the database has not answered for %.1f s; the connection is closed "
                            "after %.0f s",
                            seconds,
                            self.answer_seconds,
                        )
                wanted = gen.send(ready)
        except StopIteration as end:
            value: RV = end.value
            return value


def is_rejecting(alias: str, timeout: int, **place: str) -> bool:
    """Whether the server of `alias` answers that it is starting up, shutting down or recovering.

    `place`: parameters of libpq that name one of its addresses.
    """
    params = {**connections[alias].get_connection_params(), **place}
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    given = {name: value for name, value in params.items() if name in known}
    conninfo = make_conninfo(**{**given, "connect_timeout": timeout})
    return pq.PGconn.ping(conninfo.encode()) == pq.Ping.REJECT


def _is_standby(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server is a standby; a pooler's answer, which may be old, is verified."""
    if connection.pgconn.parameter_status(b"in_hot_standby") != b"on":
        return False
    ((is_standby,),) = connection.execute("SELECT pg_is_in_recovery()", prepare=False)
    return bool(is_standby)


def connect(
    alias: str,
    application_name: str,
    *,
    answer_seconds: float = ANSWER_SECONDS,
    **options: Any,
) -> WorkerConnection:
    """Open a separate connection to the database of `alias`, in autocommit mode.

    Plans are prepared once and kept (planning the claim costs more than running it); behind a
    transaction pooler, declared by TENANTQUEUE["POOLER"], nothing is prepared or set. `options` are
    further parameters of libpq. Raises psycopg.OperationalError, for a standby, too: its locks are
    not those of the primary.
    """
    params = dict(connections[alias].get_connection_params())
    params.pop("cursor_factory", None)
    adapters = AdaptersMap(params.pop("context", None))
    adapters.register_loader("timestamptz", UtcLoader)
    params["application_name"] = application_name
    params["prepare_threshold"] = None if get_settings().pooler else 0
    params.setdefault("connect_timeout", 10)
    params |= options
    connection = WorkerConnection.connect(**params, autocommit=True, context=adapters)
    connection.answer_seconds = answer_seconds
    connection.backend_pid = connection.info.backend_pid
    if _is_standby(connection):
        connection.close()
        raise psycopg.OperationalError("the server is a standby: nothing can be written there")
    if not get_settings().pooler:
        connection.execute(SESSION, prepare=False)
    if role := connections[alias].settings_dict["OPTIONS"].get("assume_role"):
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Literal(role)), prepare=False)
    return connection


END_SESSION = """
    SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a
    WHERE a.pid = %s AND a.pid <> pg_backend_pid()
        AND a.application_name = current_setting('application_name')
"""


def end_session(connection: WorkerConnection, backend_pid: int) -> None:
    """End the session of a connection that was lost, if the server still has it.

    A proxy that does not answer may keep it, and with it the locks and transactions.
    """
    if get_settings().pooler:
        return
    try:
        connection.execute(END_SESSION, [backend_pid], prepare=False)
    except psycopg.Error as error:
        if is_lost(connection, error):
            raise
        logger.warning("ending the server session of a lost connection failed: %s", error)


def is_direct(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server itself is at the other end of the socket, and no proxy.

    It then sees the address from which this process has connected.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        address, is_local = own.getsockname(), own.family == socket.AF_UNIX
    query = "SELECT host(inet_client_addr()), inet_client_port(), current_setting('port')::integer"
    ((host, port, server_port),) = connection.execute(query, prepare=False)
    if is_local:
        return bool(host is None and server_port == connection.info.port)
    return bool((host, port) == address[:2])


def is_lost(connection: psycopg.Connection[Any], error: psycopg.Error) -> bool:
    """Whether the connection is unusable: an error of libpq itself has no SQLSTATE."""
    if connection.closed or connection.broken:
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None
