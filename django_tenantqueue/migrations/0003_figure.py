"""Minute figures."""

from django.db import migrations, models

import django_tenantqueue.models.fields

from ._base import PostgresMigration

# Each count is added to the one in its place; the longer list decides the length.
FUNCTIONS = """
    CREATE FUNCTION tenantqueue_add_counts(a bigint[], b bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN
        IF cardinality(b) > cardinality(a) THEN
            RETURN tenantqueue_add_counts(b, a);
        END IF;
        FOR n IN 1 .. cardinality(b) LOOP
            a[n] := a[n] + b[n];
        END LOOP;
        RETURN a;
    END $$;
    CREATE AGGREGATE tenantqueue_sum_counts (bigint[]) (
        SFUNC = tenantqueue_add_counts, STYPE = bigint[], INITCOND = '{}'
    )
"""
DROP_FUNCTIONS = """
    DROP AGGREGATE tenantqueue_sum_counts (bigint[]);
    DROP FUNCTION tenantqueue_add_counts(bigint[], bigint[])
"""
# Each row of the current minute is written again with each heartbeat: leave room for HOT updates.
TUNE_FIGURE = "ALTER TABLE tenantqueue_figure SET (fillfactor = 70)"


class Migration(PostgresMigration):
    dependencies = [("tenantqueue", "0002_change")]
    operations = [
        migrations.RunSQL(FUNCTIONS, DROP_FUNCTIONS),
        migrations.CreateModel(
            name="Figure",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "queue_id",
                        "at",
                        "name",
                        "error",
                        "minutes",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("queue_id", models.IntegerField(verbose_name="queue")),
                ("at", models.DateTimeField(verbose_name="from")),
                ("name", models.TextField(verbose_name="task")),
                ("error", models.TextField(verbose_name="error")),
                ("minutes", models.SmallIntegerField(verbose_name="minutes")),
                ("started", models.BigIntegerField(verbose_name="started")),
                ("succeeded", models.BigIntegerField(verbose_name="succeeded")),
                ("failed", models.BigIntegerField(verbose_name="failed")),
                ("retried", models.BigIntegerField(verbose_name="retried")),
                ("cancelled", models.BigIntegerField(verbose_name="cancelled")),
                ("wait_seconds", models.FloatField(verbose_name="wait")),
                ("run_seconds", models.FloatField(verbose_name="run time")),
                ("waits", django_tenantqueue.models.fields.NumberListField(verbose_name="waits")),
                (
                    "runs",
                    django_tenantqueue.models.fields.NumberListField(verbose_name="run times"),
                ),
                ("last_job_id", models.BigIntegerField(null=True, verbose_name="last job")),
            ],
            options={
                "verbose_name": "figure",
                "verbose_name_plural": "figures",
                "indexes": [
                    models.Index("minutes", "at", name="tenantqueue_figure_age"),
                    models.Index(
                        "at",
                        condition=models.Q(("error", ""), _negated=True),
                        name="tenantqueue_figure_errors",
                    ),
                ],
            },
        ),
        migrations.RunSQL(TUNE_FIGURE, migrations.RunSQL.noop),
    ]
