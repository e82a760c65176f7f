"""Schedules."""

import django.core.validators
import django.db.models.functions.datetime
from django.db import migrations, models

from django_tenantqueue.migrations._base import PostgresMigration


class Migration(PostgresMigration):
    initial = True

    dependencies = [("tenantqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                (
                    "tenant",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Every tenant: one job for each tenant that has a queue of this name.",
                        max_length=200,
                        null=True,
                        verbose_name="tenant",
                    ),
                ),
                (
                    "task",
                    models.CharField(
                        help_text="Name of a task, or “module:name” of a function that CALLABLES lists.",
                        max_length=500,
                        verbose_name="task",
                    ),
                ),
                (
                    "args",
                    models.JSONField(blank=True, default=list, verbose_name="positional arguments"),
                ),
                (
                    "kwargs",
                    models.JSONField(blank=True, default=dict, verbose_name="keyword arguments"),
                ),
                (
                    "queue",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Empty: that of the task.",
                        max_length=100,
                        verbose_name="queue",
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(
                        blank=True,
                        help_text="Lower runs first. Empty: that of the task.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(-32768),
                            django.core.validators.MaxValueValidator(32767),
                        ],
                        verbose_name="priority",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("cron", "cron"), ("interval", "interval"), ("once", "once")],
                        default="cron",
                        max_length=10,
                        verbose_name="kind",
                    ),
                ),
                (
                    "expression",
                    models.CharField(
                        help_text="cron: “30 3 * * mon-fri”. Interval: “15m” or “1h 30m”. Once: “2026-12-24 18:00”.",
                        max_length=200,
                        verbose_name="when",
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="An IANA name such as “Europe/Berlin”. Empty: that of the project.",
                        max_length=100,
                        verbose_name="time zone",
                    ),
                ),
                (
                    "jitter_seconds",
                    models.FloatField(
                        db_default=0.0,
                        default=0.0,
                        help_text="Seconds. Each job is enqueued after a random delay of at most this time.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(86400.0),
                        ],
                        verbose_name="jitter",
                    ),
                ),
                (
                    "catch_up",
                    models.CharField(
                        choices=[
                            ("skip", "skip"),
                            ("once", "run once"),
                            ("all", "run each"),
                        ],
                        db_default="skip",
                        default="skip",
                        max_length=10,
                        verbose_name="missed ticks",
                    ),
                ),
                (
                    "overlap",
                    models.CharField(
                        choices=[("allow", "run concurrently"), ("skip", "skip the tick")],
                        db_default="allow",
                        default="allow",
                        help_text="If the previous job has not ended at a tick.",
                        max_length=10,
                        verbose_name="overlap",
                    ),
                ),
                ("starts_at", models.DateTimeField(blank=True, null=True, verbose_name="from")),
                ("ends_at", models.DateTimeField(blank=True, null=True, verbose_name="until")),
                (
                    "enabled",
                    models.BooleanField(db_default=True, default=True, verbose_name="enabled"),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("admin", "admin"),
                            ("code", "code"),
                            ("removed", "removed from the code"),
                        ],
                        db_default="admin",
                        default="admin",
                        editable=False,
                        max_length=10,
                        verbose_name="source",
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
                (
                    "tick_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="next tick"),
                ),
                (
                    "next_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="next run"),
                ),
                (
                    "after_tenant",
                    models.CharField(
                        blank=True,
                        editable=False,
                        max_length=200,
                        null=True,
                        verbose_name="after tenant",
                    ),
                ),
                (
                    "last_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="last run"),
                ),
                (
                    "last_tick_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="last tick"),
                ),
                (
                    "last_job_id",
                    models.BigIntegerField(editable=False, null=True, verbose_name="last job"),
                ),
                (
                    "lateness_seconds",
                    models.FloatField(editable=False, null=True, verbose_name="lateness"),
                ),
                (
                    "last_error",
                    models.TextField(
                        db_default="", default="", editable=False, verbose_name="error"
                    ),
                ),
                (
                    "last_error_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="failed at"),
                ),
                (
                    "failures",
                    models.IntegerField(
                        db_default=0, default=0, editable=False, verbose_name="failures in a row"
                    ),
                ),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "db_table": "tenantqueue_schedule",
                "ordering": ("tenant", "name"),
                "indexes": [
                    models.Index(
                        condition=models.Q(("enabled", True), ("next_at__isnull", False)),
                        fields=["next_at", "id"],
                        name="tenantqueue_schedule_due",
                    ),
                    models.Index(
                        condition=models.Q(("failures__gt", 0)),
                        fields=["last_error_at"],
                        name="tenantqueue_schedule_failing",
                    ),
                    models.Index(
                        condition=models.Q(("source", "admin"), _negated=True),
                        fields=["id"],
                        name="tenantqueue_schedule_code",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "name"),
                        name="tenantqueue_schedule_unique",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ("cron", "interval", "once"))),
                        name="tenantqueue_schedule_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("catch_up__in", ("skip", "once", "all"))),
                        name="tenantqueue_schedule_catch_up",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("overlap__in", ("allow", "skip"))),
                        name="tenantqueue_schedule_overlap",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("source__in", ("admin", "code", "removed"))),
                        name="tenantqueue_schedule_source",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("jitter_seconds__gte", 0), ("jitter_seconds__lte", 86400)
                        ),
                        name="tenantqueue_schedule_jitter",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("tenant__isnull", False), ("overlap", "allow"), _connector="OR"
                        ),
                        name="tenantqueue_schedule_every_tenant",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("starts_at__isnull", True),
                            ("ends_at__isnull", True),
                            ("starts_at__lte", models.F("ends_at")),
                            _connector="OR",
                        ),
                        name="tenantqueue_schedule_span",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("next_at__isnull", True), ("tick_at__isnull", True)),
                            models.Q(("next_at__isnull", False), ("tick_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="tenantqueue_schedule_tick",
                    ),
                ],
            },
        ),
    ]
