"""Indexes that find failures by task and class of error.

None of them blocks a live table. An interrupted migration can be run again.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

from ._base import PostgresMigration
from ._indexes import add_indexes

# The class of the newest error, as figures name it. The planner replaces a call by the expression.
FUNCTION = """
    CREATE OR REPLACE FUNCTION tenantqueue_error_class(errors jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN coalesce(nullif(left(errors -> -1 ->> 'class', 300), ''), '?')
"""
DROP_FUNCTION = "DROP FUNCTION IF EXISTS tenantqueue_error_class(jsonb)"
# Jobs that wait after a failure. Jobs that have never failed are not in it.
OF_HOT = {
    "tenantqueue_job_errors": "(left(name, 300), tenantqueue_error_class(errors), id) "
    "WHERE errors IS NOT NULL AND state IN ('scheduled', 'held', 'created')"
}
# Jobs that ended in error, in the order of their ends.
OF_HISTORY = {
    "tenantqueue_history_errors": "(left(name, 300), tenantqueue_error_class(errors), "
    "finished_at, id) WHERE state = 'error'"
}


class Migration(PostgresMigration):
    atomic = False
    dependencies = [("tenantqueue", "0003_figure")]
    operations = [
        migrations.RunSQL(FUNCTION, DROP_FUNCTION),
        add_indexes(OF_HOT, OF_HISTORY),
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
