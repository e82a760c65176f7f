"""Statements read from sql/, and the two kinds of connection they run on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from ..exceptions import Unsupported

PACKAGE = Path(__file__).parent.parent
PARTS = PACKAGE / "sql/parts"
_PARAMETER = re.compile(rb"%\((\w+)\)s")
_INCLUDE = re.compile(rb"^-- include: (\w+)\n", re.MULTILINE)


@cache
def statement_files() -> dict[str, Path]:
    """Return the path of each statement; no two folders have one of the same name.

    They are in sql/, and in the sql/ of each optional part. sql/parts/ holds parts that several
    statements include.
    """
    paths = sorted((*PACKAGE.glob("sql/*/*.sql"), *PACKAGE.glob("contrib/*/sql/*.sql")))
    return {path.stem: path for path in paths if path.parent != PARTS}


@cache
def statement(name: str) -> bytes:
    """Return the text of <name>.sql.

    Each line `-- include: <part>` is replaced by the text of parts/<part>.sql.
    """
    return _whole(statement_files()[name])


@cache
def numbered(name: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the text of a statement with $1, $2, … and the names of these parameters."""
    names: list[str] = []

    def number(match: re.Match[bytes]) -> bytes:
        parameter = match[1].decode()
        if parameter not in names:
            names.append(parameter)
        return b"$%d" % (names.index(parameter) + 1)

    return _PARAMETER.sub(number, statement(name)), tuple(names)


def _whole(path: Path) -> bytes:
    return _INCLUDE.sub(lambda found: _whole(PARTS / f"{found[1].decode()}.sql"), path.read_bytes())


Where = str | psycopg.Connection[Any]
"""The connection on which a statement runs: see execute()."""


def execute(where: Where, name: str, params: Mapping[str, Any]) -> psycopg.Cursor[Any]:
    """Run statement `name` and return its cursor.

    `where` is the alias of a Django database, or a worker's own connection. With an alias it runs
    inside the transaction that is open there, with server-side parameters, and raises Django's
    database errors. Raises Unsupported when it is not PostgreSQL.
    """
    if isinstance(where, psycopg.Connection):
        return send_statement(where, name, params)
    wrapper = connections[where]
    raw = ready_connection(wrapper)
    with wrapper.wrap_database_errors:
        # planned again each time, for the current size of the tables
        return send_statement(raw, name, params, prepare=False)


def send_statement(
    raw: psycopg.Connection[Any],
    name: str,
    params: Mapping[str, Any],
    *,
    prepare: bool | None = None,
) -> psycopg.Cursor[Any]:
    """Run statement `name` on psycopg's connection and return its cursor.

    `prepare`: None means that the connection decides. The text has numbered parameters, because
    psycopg would search it for named ones each time, which takes 0.2 ms for a claim.
    """
    text, names = numbered(name)
    if prepare is None:
        prepare = not is_pooled(raw)
    values = [params[parameter] for parameter in names]
    return psycopg.RawCursor(raw).execute(text, values, prepare=prepare)


LOCK_MILLISECONDS = 50
"""Longest wait for a lock that others will ask for soon, such as a gate's."""
WORKER_LOCK_MILLISECONDS = LOCK_MILLISECONDS * 4
"""Longest wait of a worker's claims and heartbeats for a lock."""
LOCK_TIMEOUT = b"SET LOCAL lock_timeout = %d" % WORKER_LOCK_MILLISECONDS
"""Limits this wait behind a transaction pooler, where a session has no settings (see
worker/connection.py). Without it a worker's claims and heartbeats would wait, too."""


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether a worker's own connection goes through a pooler, so nothing is prepared."""
    return connection.prepare_threshold is None


def execute_bounded(where: Where, name: str, params: Mapping[str, Any]) -> psycopg.Cursor[Any]:
    """Like execute(), for a worker's statement that may have to wait for a row's lock.

    Raises psycopg.errors.LockNotAvailable on a worker's own connection when that takes 200 ms.
    Behind a pooler it is a separate transaction, in one round trip, unless it is inside one.
    """
    if (
        not isinstance(where, psycopg.Connection)
        or not is_pooled(where)
        or where.pgconn.transaction_status != TransactionStatus.IDLE
    ):
        return execute(where, name, params)
    try:
        with where.pipeline():
            where.execute(b"BEGIN", prepare=False)
            where.execute(LOCK_TIMEOUT, prepare=False)
            cursor = execute(where, name, params)
            where.execute(b"COMMIT", prepare=False)
    except psycopg.Error:
        if not where.broken:
            where.rollback()
        raise
    return cursor


def commits_alone(where: Where) -> bool:
    """Whether the next statement is a transaction by itself.

    Waking workers then waits for neither disk nor standby: see wake_workers.sql.
    """
    if not isinstance(where, psycopg.Connection):
        where = ready_connection(connections[where])
    return where.autocommit and where.pgconn.transaction_status == TransactionStatus.IDLE


def ready_connection(wrapper: BaseDatabaseWrapper) -> psycopg.Connection[Any]:
    """Return psycopg's connection of one of Django's, opened and ready to run a statement.

    Raises Unsupported when it is not PostgreSQL, and Django's error in a broken transaction.
    """
    if wrapper.vendor != "postgresql":
        raise Unsupported(
            f"the database {wrapper.alias!r} is {wrapper.display_name}: django_tenantqueue needs "
            "PostgreSQL 15 or later; name its alias in TENANTQUEUE['DATABASE']"
        )
    wrapper.close_if_health_check_failed()  # as a cursor of Django's does: see CONN_HEALTH_CHECKS
    wrapper.ensure_connection()
    wrapper.validate_no_broken_transaction()
    raw: psycopg.Connection[Any] = wrapper.connection
    return raw


def fetch(where: Where, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run statement `name` and return all its rows."""
    return execute(where, name, params).fetchall()


def array(values: Iterable[object]) -> str:
    """Return an array literal of numbers; far cheaper than adapting each element."""
    return "{" + ",".join(map(str, values)) + "}"


def text_array(values: Iterable[str | None]) -> str:
    """Return an array literal of texts; None is NULL."""
    return (
        "{"
        + ",".join(
            "NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
            for v in values
        )
        + "}"
    )
