"""Routings."""

import django.db.models.functions.datetime
from django.db import migrations, models

from django_tenantqueue.migrations._base import PostgresMigration


class Migration(PostgresMigration):
    initial = True

    dependencies = [("tenantqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Routing",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.CharField(
                        blank=True,
                        default=None,
                        max_length=200,
                        null=True,
                        verbose_name="tenant",
                    ),
                ),
                (
                    "pattern",
                    models.CharField(
                        help_text="Name of a task, a method or a category, as its jobs show it. “*” stands for any text, as in “app.tasks.*”.",
                        max_length=500,
                        verbose_name="task",
                    ),
                ),
                (
                    "queue",
                    models.CharField(
                        help_text="Queue of new jobs with this name.",
                        max_length=100,
                        verbose_name="queue",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created at",
                    ),
                ),
            ],
            options={
                "verbose_name": "routing",
                "verbose_name_plural": "routings",
                "db_table": "tenantqueue_routing",
                "ordering": ("tenant", "pattern"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "pattern"),
                        name="tenantqueue_routing_unique",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("pattern", ""), _negated=True),
                            models.Q(("queue", ""), _negated=True),
                        ),
                        name="tenantqueue_routing_names",
                    ),
                ],
            },
        ),
    ]
