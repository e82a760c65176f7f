"""Lists of one queue in the order of time, and what clients of Fireworq ask of a queue."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

HISTORY = "tenantqueue_job_history"
# What waits for its time, queue by queue. Only jobs that wait for their time are in it.
HOT_INDEX = "tenantqueue_job_deferred"
OF_HOT = "tenantqueue_job_hot (queue_id, run_at, id) WHERE state = 'scheduled'"
# Jobs that ended in error, queue by queue: by their ends, and by their ids. Others are in neither.
OF_HISTORY = {
    "tenantqueue_history_ended": f"{HISTORY} (queue_id, finished_at, id) WHERE state = 'error'",
    "tenantqueue_history_pushed": f"{HISTORY} (queue_id, id) WHERE state = 'error'",
}
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


def add_indexes(apps: Any, schema_editor: Any) -> None:
    """Create the index of each leaf without blocking it, and attach it to the history's."""
    quote = schema_editor.quote_name
    schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {HOT_INDEX}")
    schema_editor.execute(f"CREATE INDEX CONCURRENTLY {HOT_INDEX} ON {OF_HOT}")
    for name, definition in OF_HISTORY.items():
        # a leaf that is made from now on gets the index when it is attached
        schema_editor.execute(f"CREATE INDEX IF NOT EXISTS {name} ON ONLY {definition}")
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(LEAVES, [HISTORY, name])
            leaves = [leaf for (leaf,) in cursor.fetchall()]
        for leaf in leaves:
            index = quote(f"{leaf}_{name.rpartition('_')[2]}")
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")
            of_leaf = definition.replace(HISTORY, quote(leaf), 1)
            schema_editor.execute(f"CREATE INDEX CONCURRENTLY {index} ON {of_leaf}")
            schema_editor.execute(f"ALTER INDEX {name} ATTACH PARTITION {index}")


def drop_indexes(apps: Any, schema_editor: Any) -> None:
    """Drop them; the index of a partitioned table cannot be dropped concurrently."""
    for name in OF_HISTORY:
        schema_editor.execute(f"DROP INDEX IF EXISTS {name}")
    schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {HOT_INDEX}")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tenantqueue", "0017_follow_ups")]

    operations = [
        # first: it can be done again when it was interrupted
        migrations.RunPython(add_indexes, drop_indexes),
        migrations.CreateModel(
            name="FireworqQueue",
            fields=[
                (
                    "queue",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenantqueue.tenantqueue",
                        verbose_name="queue",
                    ),
                ),
                (
                    "polling_interval",
                    models.IntegerField(null=True, verbose_name="polling interval"),
                ),
                ("pushes", models.BigIntegerField(default=0, verbose_name="pushes")),
                ("minute", models.DateTimeField(null=True, verbose_name="minute of the last push")),
                (
                    "pushes_in_minute",
                    models.IntegerField(default=0, verbose_name="pushes in that minute"),
                ),
                (
                    "pushes_before",
                    models.IntegerField(default=0, verbose_name="pushes in the minute before that"),
                ),
            ],
            options={
                "verbose_name": "queue of Fireworq clients",
                "verbose_name_plural": "queues of Fireworq clients",
            },
        ),
    ]
