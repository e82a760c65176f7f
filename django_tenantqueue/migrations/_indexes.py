"""Adds indexes of the job table without blocking it. Migrations that were applied use it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db import migrations

from ._base import patiently

HISTORY = "tenantqueue_job_history"
LEAVES = """
    SELECT leaf.relname
    FROM pg_inherits i
    JOIN pg_class leaf ON leaf.oid = i.inhrelid
    WHERE i.inhparent = %s::regclass
        AND NOT EXISTS (
            SELECT
            FROM pg_inherits part
            JOIN pg_index x ON x.indexrelid = part.inhrelid
            WHERE part.inhparent = %s::regclass AND x.indrelid = leaf.oid
        )
"""


def add_indexes(of_hot: Mapping[str, str], of_history: Mapping[str, str]) -> migrations.RunPython:
    """Return the operation that adds indexes, each by its name and what follows the table's.

    Outside of a transaction. It can be run again when it was interrupted.
    """

    def add(apps: Any, schema_editor: Any) -> None:
        quote = schema_editor.quote_name
        for name, definition in of_hot.items():
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            schema_editor.execute(
                f"CREATE INDEX CONCURRENTLY {name} ON tenantqueue_job_hot {definition}"
            )
        for name, definition in of_history.items():
            # a leaf that is made from now on gets the index when it is attached
            create = f"CREATE INDEX IF NOT EXISTS {name} ON ONLY {HISTORY} {definition}"
            patiently(schema_editor, partial(schema_editor.execute, create))
            with schema_editor.connection.cursor() as cursor:
                cursor.execute(LEAVES, [HISTORY, name])
                leaves = [leaf for (leaf,) in cursor.fetchall()]
            for leaf in leaves:
                index = quote(f"{leaf}_{name.rpartition('_')[2]}")
                schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")
                schema_editor.execute(
                    f"CREATE INDEX CONCURRENTLY {index} ON {quote(leaf)} {definition}"
                )
                attach = f"ALTER INDEX {name} ATTACH PARTITION {index}"
                patiently(schema_editor, partial(schema_editor.execute, attach))

    def drop(apps: Any, schema_editor: Any) -> None:
        for name in of_history:  # the index of a partitioned table cannot be dropped concurrently
            drop_one = f"DROP INDEX IF EXISTS {name}"
            patiently(schema_editor, partial(schema_editor.execute, drop_one))
        for name in of_hot:
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")

    return migrations.RunPython(add, drop)
