"""Retention rules."""

import django.core.validators
import django.db.models.functions.datetime
from django.db import migrations, models

from django_tenantqueue.migrations._base import PostgresMigration


class Migration(PostgresMigration):
    initial = True

    dependencies = [("tenantqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="RetentionRule",
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
                    "task",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Name, as its jobs show it. “*” stands for any text, as in “app.tasks.*”. Empty: every task.",
                        max_length=500,
                        verbose_name="task",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("success", "success"),
                            ("error", "error"),
                            ("cancelled", "cancelled"),
                        ],
                        default="",
                        help_text="Empty: every final state.",
                        max_length=10,
                        verbose_name="state",
                    ),
                ),
                (
                    "keep_days",
                    models.IntegerField(
                        blank=True,
                        help_text="Days after the job ended. Empty: inherited from the next less specific rule or HISTORY_KEEP_MONTHS.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(36500),
                        ],
                        verbose_name="keep jobs (days)",
                    ),
                ),
                (
                    "arguments_days",
                    models.IntegerField(
                        blank=True,
                        help_text="Days after the job ended. A job without its arguments cannot be retried. Empty: inherited from the next less specific rule.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(36500),
                        ],
                        verbose_name="keep arguments (days)",
                    ),
                ),
                (
                    "results_days",
                    models.IntegerField(
                        blank=True,
                        help_text="Days after the job ended. Empty: inherited from the next less specific rule.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(36500),
                        ],
                        verbose_name="keep results (days)",
                    ),
                ),
                (
                    "errors_days",
                    models.IntegerField(
                        blank=True,
                        help_text="Days for messages and tracebacks. Exception classes stay with the job. Empty: inherited from the next less specific rule.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(36500),
                        ],
                        verbose_name="keep errors (days)",
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
                "verbose_name": "retention rule",
                "verbose_name_plural": "retention rules",
                "db_table": "tenantqueue_retentionrule",
                "ordering": ("tenant", "task", "state"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "task", "state"),
                        name="tenantqueue_retentionrule_unique",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("", "cancelled", "error", "success"))),
                        name="tenantqueue_retentionrule_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("keep_days__isnull", True),
                            models.Q(("keep_days__gte", 1), ("keep_days__lte", 36500)),
                            _connector="OR",
                        ),
                        name="tenantqueue_retentionrule_keep_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("arguments_days__isnull", True),
                            models.Q(("arguments_days__gte", 0), ("arguments_days__lte", 36500)),
                            _connector="OR",
                        ),
                        name="tenantqueue_retentionrule_arguments_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("results_days__isnull", True),
                            models.Q(("results_days__gte", 0), ("results_days__lte", 36500)),
                            _connector="OR",
                        ),
                        name="tenantqueue_retentionrule_results_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("errors_days__isnull", True),
                            models.Q(("errors_days__gte", 0), ("errors_days__lte", 36500)),
                            _connector="OR",
                        ),
                        name="tenantqueue_retentionrule_errors_days",
                    ),
                ],
            },
        ),
    ]
