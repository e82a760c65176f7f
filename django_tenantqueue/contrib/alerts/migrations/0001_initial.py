"""Alert rules and alerts."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from django_tenantqueue.migrations._base import PostgresMigration


class Migration(PostgresMigration):
    initial = True

    dependencies = [("tenantqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="AlertRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                ("kind", models.CharField(max_length=50, verbose_name="alert on")),
                (
                    "threshold",
                    models.FloatField(
                        blank=True,
                        help_text="Number of waiting or failed jobs, or of a schedule's failures in a row. Percent of failed runs. Seconds for late queues and schedules, held jobs and queues that no worker takes. Other conditions have no threshold. Empty: the default.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(10000000.0),
                        ],
                        verbose_name="threshold",
                    ),
                ),
                (
                    "range_minutes",
                    models.IntegerField(
                        db_default=60,
                        default=60,
                        help_text="Minutes in which failures and dead workers are counted.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1440),
                        ],
                        verbose_name="range",
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
                    "queue",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Empty: all.",
                        max_length=100,
                        verbose_name="queue",
                    ),
                ),
                (
                    "task",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Empty: all.",
                        max_length=500,
                        verbose_name="task",
                    ),
                ),
                (
                    "webhook_url",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="https://…",
                        max_length=2000,
                        verbose_name="webhook",
                    ),
                ),
                (
                    "webhook_format",
                    models.CharField(
                        choices=[("json", "JSON"), ("slack", "Slack")],
                        default="json",
                        max_length=10,
                        verbose_name="format",
                    ),
                ),
                (
                    "webhook_secret",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="“whsec_” and 24 to 64 bytes in Base64. Empty: requests are not signed.",
                        max_length=200,
                        verbose_name="signing secret",
                    ),
                ),
                (
                    "emails",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Addresses, separated by commas.",
                        verbose_name="e-mail to",
                    ),
                ),
                (
                    "log",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Logger django_tenantqueue.alerts of the worker that sends the message.",
                        verbose_name="write to the log",
                    ),
                ),
                (
                    "notify_resolved",
                    models.BooleanField(
                        db_default=True, default=True, verbose_name="notify when resolved"
                    ),
                ),
                (
                    "repeat_minutes",
                    models.IntegerField(
                        blank=True,
                        default=60,
                        help_text="Minutes until recipients are notified again of an open alert. Empty: once.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(525600),
                        ],
                        verbose_name="repeat after",
                    ),
                ),
                (
                    "max_per_hour",
                    models.IntegerField(
                        db_default=12,
                        default=12,
                        help_text="Maximum. The next message says how many alerts were left out.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                        verbose_name="messages per hour",
                    ),
                ),
                ("quiet_from", models.TimeField(blank=True, null=True, verbose_name="quiet from")),
                (
                    "quiet_until",
                    models.TimeField(
                        blank=True,
                        help_text="Alerts that open in quiet hours are sent after them.",
                        null=True,
                        verbose_name="quiet until",
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
                    "enabled",
                    models.BooleanField(db_default=True, default=True, verbose_name="enabled"),
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
                    "next_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="next check",
                    ),
                ),
                ("hour_at", models.DateTimeField(editable=False, null=True)),
                ("hour_sent", models.IntegerField(db_default=0, default=0, editable=False)),
                ("left_out", models.IntegerField(db_default=0, default=0, editable=False)),
                (
                    "checked_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="last check"),
                ),
                (
                    "last_error",
                    models.TextField(
                        db_default="", default="", editable=False, verbose_name="error"
                    ),
                ),
            ],
            options={
                "verbose_name": "alert rule",
                "verbose_name_plural": "alert rules",
                "db_table": "tenantqueue_alertrule",
                "ordering": ("tenant", "name"),
                "indexes": [
                    models.Index(
                        condition=models.Q(("enabled", True)),
                        fields=["next_at"],
                        name="tenantqueue_alertrule_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "name"),
                        name="tenantqueue_alertrule_unique",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("webhook_format__in", ("json", "slack"))),
                        name="tenantqueue_alertrule_format",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("threshold__isnull", True), ("threshold__gte", 0.0), _connector="OR"
                        ),
                        name="tenantqueue_alertrule_threshold",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_per_hour__gte", 1),
                            ("range_minutes__gte", 1),
                            models.Q(
                                ("repeat_minutes__isnull", True),
                                ("repeat_minutes__gte", 1),
                                _connector="OR",
                            ),
                        ),
                        name="tenantqueue_alertrule_times",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("quiet_from__isnull", True), ("quiet_until__isnull", True)),
                            models.Q(("quiet_from__isnull", False), ("quiet_until__isnull", False)),
                            _connector="OR",
                        ),
                        name="tenantqueue_alertrule_quiet",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tenant", models.TextField(default=None, editable=False, null=True)),
                ("key", models.TextField(editable=False)),
                ("label", models.TextField(verbose_name="object")),
                ("text", models.TextField(verbose_name="what is wrong")),
                ("opened_at", models.DateTimeField(verbose_name="opened")),
                ("seen_at", models.DateTimeField(verbose_name="last seen")),
                ("resolved_at", models.DateTimeField(null=True, verbose_name="resolved")),
                ("notified_at", models.DateTimeField(null=True, verbose_name="last notified")),
                ("pending", models.BooleanField(default=True, verbose_name="not notified yet")),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenantqueue_alerts.alertrule",
                        verbose_name="rule",
                    ),
                ),
            ],
            options={
                "verbose_name": "alert",
                "verbose_name_plural": "alerts",
                "db_table": "tenantqueue_alert",
                "ordering": ("-id",),
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("pending", True)),
                        fields=["rule", "id"],
                        name="tenantqueue_alert_pending",
                    ),
                    models.Index(
                        condition=models.Q(("resolved_at__isnull", False)),
                        fields=["resolved_at"],
                        name="tenantqueue_alert_resolved",
                    ),
                    models.Index(fields=["tenant", "id"], name="tenantqueue_alert_tenant"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("resolved_at__isnull", True)),
                        fields=("rule", "key"),
                        name="tenantqueue_alert_open",
                    )
                ],
            },
        ),
    ]
