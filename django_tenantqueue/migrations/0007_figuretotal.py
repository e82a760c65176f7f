"""Totals of the figures, for metrics."""

from django.db import migrations, models

import django_tenantqueue.models.fields

from ._base import PostgresMigration

NUMBERS = {
    "started": "started",
    "succeeded": "succeeded",
    "failed": "failed",
    "retried": "retried",
    "cancelled": "cancelled",
    "wait_micros": "wait",
    "run_micros": "run time",
}
LISTS = {"waits": "waits", "runs": "run times"}


class Migration(PostgresMigration):
    dependencies = [("tenantqueue", "0006_clock_and_words")]
    operations = [
        migrations.CreateModel(
            name="FigureTotal",
            fields=[
                (
                    "name",
                    models.TextField(primary_key=True, serialize=False, verbose_name="task"),
                ),
                ("at", models.DateTimeField(verbose_name="up to")),
                *((name, models.BigIntegerField(verbose_name=v)) for name, v in NUMBERS.items()),
                *(
                    (name, django_tenantqueue.models.fields.NumberListField(verbose_name=v))
                    for name, v in LISTS.items()
                ),
            ],
            options={
                "verbose_name": "total of figures",
                "verbose_name_plural": "totals of figures",
            },
        ),
    ]
