"""What PostgreSQL's planner knows of the tables that grow and shrink within minutes."""

from __future__ import annotations

import psycopg
from django.db import connections
from psycopg import sql

from .base import fetch, ready_connection

TABLES = {"tenantqueue_job_hot": "max_attempts", "tenantqueue_uniquekey": "mode"}
"""What they are, each with a column whose own statistics no plan depends on."""


def find_grown_tables(using: str, *, least_pages: int = 64, growth: int = 4) -> list[str]:
    """Return tables of at least `least_pages` that have grown `growth` times since analysed."""
    params = {"tables": list(TABLES), "least_pages": least_pages, "growth": growth}
    return [name for (name,) in fetch(using, "find_grown_tables", params)]


def refresh_size(using: str, table: str) -> None:
    """Update the planner's size of a table, which makes all sessions plan again.

    Reads at most 3,000 rows. The statistics of columns are left to autovacuum, which continues to
    count the changes that it waits for. Does nothing while autovacuum works on the table.
    """
    raw = ready_connection(connections[using])
    command = sql.SQL("ANALYZE (SKIP_LOCKED) {} ({})").format(
        sql.Identifier(table), sql.Identifier(TABLES[table])
    )
    with raw.transaction(), psycopg.Cursor(raw) as cursor:
        cursor.execute("SET LOCAL default_statistics_target = 10")
        cursor.execute(command)
