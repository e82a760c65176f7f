"""Totals of the figures, for metrics."""

from django.db import migrations, models

import django_tenantqueue.models.fields
from django_tenantqueue.migrations._base import PostgresMigration


class Migration(PostgresMigration):
    initial = True

    dependencies = [("tenantqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="FigureTotal",
            fields=[
                ("task", models.TextField(primary_key=True, serialize=False, verbose_name="task")),
                ("at", models.DateTimeField(verbose_name="up to")),
                ("started", models.BigIntegerField(verbose_name="started")),
                ("succeeded", models.BigIntegerField(verbose_name="succeeded")),
                ("failed", models.BigIntegerField(verbose_name="failed")),
                ("retried", models.BigIntegerField(verbose_name="retried")),
                ("cancelled", models.BigIntegerField(verbose_name="cancelled")),
                ("wait_micros", models.BigIntegerField(verbose_name="wait")),
                ("run_micros", models.BigIntegerField(verbose_name="run time")),
                ("waits", django_tenantqueue.models.fields.NumberListField(verbose_name="waits")),
                (
                    "runs",
                    django_tenantqueue.models.fields.NumberListField(verbose_name="run times"),
                ),
            ],
            options={
                "verbose_name": "task total",
                "verbose_name_plural": "task totals",
                "db_table": "tenantqueue_figuretotal",
            },
        ),
    ]
