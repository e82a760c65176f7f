"""Empties the tables between tests whose transactions are real."""

from __future__ import annotations

from django.db import connection

KEPT = ["auth_permission", "django_content_type", "django_migrations"]
"""What migrations fill, and no test changes."""
SMALL_BYTES = 4 * 8192
"""Up to this size rows are deleted, which is quicker; the dead ones of earlier tests stay few."""
FILLED = """
    SELECT quote_ident(relname), pg_relation_size(oid) <= %s
    FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL (%s)
    AND pg_relation_size(oid) > 0
"""


def empty_tables() -> None:
    """Empty the tables that have had rows.

    Django's flush truncates all of them, with 150 indexes, and writes content types and permissions
    again, which takes ten times the work.
    """
    with connection.cursor() as cursor:
        cursor.execute(FILLED, [SMALL_BYTES, KEPT])
        found = cursor.fetchall()
        large = [name for name, small in found if not small]
        statements = [f"TRUNCATE {', '.join(large)} CASCADE"] if large else []
        statements += [f"DELETE FROM {name}" for name, small in found if small]
        # One transaction: foreign keys are checked at its end, whatever comes first.
        cursor.execute("; ".join(statements))
