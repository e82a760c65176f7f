"""Statements read from sql/, and the two kinds of connection they run on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections

from ..conf import get_settings
from ..exceptions import Unsupported

SQL_FOLDER = Path(__file__).parent.parent / "sql"

PREPARED = frozenset({"insert_job", "insert_jobs", "wake_workers"})
"""Statements that Django's connections prepare, because they are sent all the time. The others are
planned anew each time, for the size that the tables have then."""


@cache
def statement(name: str) -> bytes:
    """Return the text of sql/<name>.sql."""
    return (SQL_FOLDER / f"{name}.sql").read_bytes()


def execute(
    where: str | psycopg.Connection[Any], name: str, params: Mapping[str, Any]
) -> psycopg.Cursor[Any]:
    """Run statement `name` and return its cursor.

    `where` is the alias of a Django database or a worker's own connection. With an alias it runs on
    the thread's Django connection, inside whatever transaction is open there, with server-side
    parameters, and raises Django's database errors; Unsupported when it is not PostgreSQL.
    """
    if not isinstance(where, str):
        return where.execute(statement(name), params, prepare=where.prepare_threshold is not None)
    wrapper = connections[where]
    if wrapper.vendor != "postgresql":
        raise Unsupported(
            f"the database {where!r} is {wrapper.display_name}: django_tenantqueue needs "
            "PostgreSQL 15 or later; name its alias in TENANTQUEUE['DATABASE']"
        )
    wrapper.ensure_connection()
    wrapper.validate_no_broken_transaction()
    raw: psycopg.Connection[Any] = wrapper.connection
    with wrapper.wrap_database_errors:
        cursor = psycopg.Cursor(raw)
        if name not in PREPARED or get_settings().pooler:
            return cursor.execute(statement(name), params, prepare=False)
        kept, raw.prepare_threshold = raw.prepare_threshold, 0
        try:
            return cursor.execute(statement(name), params)
        finally:
            raw.prepare_threshold = kept


def fetch(
    where: str | psycopg.Connection[Any], name: str, params: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
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
