"""The connection on which a worker process claims and finishes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
from django.db import connections
from psycopg import pq, sql
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import make_conninfo
from psycopg.types.datetime import TimestamptzLoader

from ..conf import get_settings
from ..queries.base import WORKER_LOCK_MILLISECONDS

PROBE_SECONDS = 1.0
"""How often an idle connection is probed. An end by the server is noticed at once. Halved: an idle
fleet costs the server more. Doubled: orders of operators act a second later, and a job meets a
connection that is lost more often."""
SESSION = (
    b"""
    SET default_transaction_isolation = 'read committed';
    SET TimeZone = 'UTC';
    SET jit = off;
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_bitmapscan = off;
    SET lock_timeout = %d;
    SET statement_timeout = '60s'
"""
    % WORKER_LOCK_MILLISECONDS
)
"""The settings of the session.

A plan is made once and kept until the server next analyses the table. A plan made for an empty
table would read all of it with sequential scans when 40,000 jobs have come (measured: 1.6 s a claim
instead of 3 ms). This is why the two enable_ settings are off; every statement has an index. The
lock timeout bounds the wait for a job row that an operator's open transaction holds.
"""


class UtcLoader(TimestamptzLoader):
    """Reads times by the offset that the server sends with them.

    Django's own loader expects each session to be in UTC, which is not so behind a pooler.
    """

    def load(self, data: Buffer) -> datetime:
        """Return an aware time in UTC."""
        return super().load(data).astimezone(UTC)


def is_rejecting(alias: str, timeout: int) -> bool:
    """Whether the server of `alias` answers that it is starting up, shutting down or recovering."""
    params = connections[alias].get_connection_params()
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


def connect(alias: str, application_name: str, **options: Any) -> psycopg.Connection[Any]:
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
    connection = psycopg.connect(**params, autocommit=True, context=adapters)
    if _is_standby(connection):
        connection.close()
        raise psycopg.OperationalError("the server is a standby: nothing can be written there")
    if not get_settings().pooler:
        connection.execute(SESSION, prepare=False)
    if role := connections[alias].settings_dict["OPTIONS"].get("assume_role"):
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Literal(role)), prepare=False)
    return connection


def is_lost(connection: psycopg.Connection[Any], error: psycopg.Error) -> bool:
    """Whether the connection is unusable: an error of libpq itself has no SQLSTATE."""
    if connection.closed or connection.broken:
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None
