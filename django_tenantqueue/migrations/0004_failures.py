"""Indexes that find failures by task and class of error.

None of them blocks a live table. An interrupted migration can be run again.
"""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

HISTORY = "tenantqueue_job_history"
HISTORY_INDEX = "tenantqueue_history_errors"
HOT_INDEX = "tenantqueue_job_errors"

# The class of the newest error, as figures name it. The planner replaces a call by the expression.
FUNCTION = """
    CREATE OR REPLACE FUNCTION tenantqueue_error_class(errors jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN coalesce(nullif(left(errors -> -1 ->> 'class', 300), ''), '?')
"""
DROP_FUNCTION = "DROP FUNCTION IF EXISTS tenantqueue_error_class(jsonb)"
# Jobs that ended in error, in the order of their ends.
OF_HISTORY = (
    f"{HISTORY} (left(name, 300), tenantqueue_error_class(errors), finished_at, id) "
    "WHERE state = 'error'"
)
# Jobs that wait after a failure. Jobs that have never failed are not in it.
OF_HOT = (
    "tenantqueue_job_hot (left(name, 300), tenantqueue_error_class(errors), id) "
    "WHERE errors IS NOT NULL AND state IN ('scheduled', 'held', 'created')"
)
LEAVES = """
    SELECT leaf.relname, leaf.relname || '_errors'
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


def add_indexes(apps: Any, schema_editor: Any) -> None:
    """Create the index of each leaf without blocking it, and attach it to the history's."""
    quote = schema_editor.quote_name
    schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {HOT_INDEX}")
    schema_editor.execute(f"CREATE INDEX CONCURRENTLY {HOT_INDEX} ON {OF_HOT}")
    # a leaf that is made from now on gets the index when it is attached
    schema_editor.execute(f"CREATE INDEX IF NOT EXISTS {HISTORY_INDEX} ON ONLY {OF_HISTORY}")
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(LEAVES, [HISTORY, HISTORY_INDEX])
        leaves = cursor.fetchall()
    for leaf, index in leaves:
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {quote(index)}")
        of_leaf = OF_HISTORY.replace(HISTORY, quote(leaf), 1)
        schema_editor.execute(f"CREATE INDEX CONCURRENTLY {quote(index)} ON {of_leaf}")
        schema_editor.execute(f"ALTER INDEX {HISTORY_INDEX} ATTACH PARTITION {quote(index)}")


def drop_indexes(apps: Any, schema_editor: Any) -> None:
    """Drop them; the index of a partitioned table cannot be dropped concurrently."""
    schema_editor.execute(f"DROP INDEX IF EXISTS {HISTORY_INDEX}")
    schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {HOT_INDEX}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tenantqueue", "0003_figure")]
    operations = [
        migrations.RunSQL(FUNCTION, DROP_FUNCTION),
        migrations.RunPython(add_indexes, drop_indexes),
        # what an interrupted run has left
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS tenantqueue_figure_groups", migrations.RunSQL.noop
        ),
        RemoveIndexConcurrently("figure", "tenantqueue_figure_errors"),
        AddIndexConcurrently(
            "figure",
            models.Index(
                "queue_id",
                "at",
                condition=models.Q(("error", ""), _negated=True),
                name="tenantqueue_figure_errors",
            ),
        ),
        AddIndexConcurrently(
            "figure",
            models.Index(
                "name",
                "error",
                "at",
                condition=models.Q(("error", ""), _negated=True),
                name="tenantqueue_figure_groups",
            ),
        ),
    ]
