"""Tokens of the HTTP API, and answers that are kept for requests with a key."""

import django.core.serializers.json
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
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="The client that uses this token. Shown in the list of changes.",
                        max_length=200,
                        verbose_name="name",
                    ),
                ),
                (
                    "tenant",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Every tenant: each request names its tenant.",
                        max_length=200,
                        null=True,
                        verbose_name="tenant",
                    ),
                ),
                ("scopes", models.CharField(max_length=100, verbose_name="scopes")),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                (
                    "start",
                    models.CharField(editable=False, max_length=20, verbose_name="begins with"),
                ),
                (
                    "queues",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Allowed queues, separated by commas. * stands for any text. Empty: existing queues of the tenant, and those that a task or the settings name.",
                        max_length=1000,
                        verbose_name="queues",
                    ),
                ),
                (
                    "min_priority",
                    models.SmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Allowed priorities. Lower numbers run first.",
                        verbose_name="priorities from",
                    ),
                ),
                (
                    "max_priority",
                    models.SmallIntegerField(
                        db_default=400, default=400, verbose_name="priorities to"
                    ),
                ),
                (
                    "requests_per_minute",
                    models.IntegerField(
                        blank=True,
                        help_text="Maximum. Empty: TENANTQUEUE['API']['REQUESTS_PER_MINUTE'].",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(10000000),
                        ],
                        verbose_name="requests/min",
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True, help_text="Empty: never.", null=True, verbose_name="expires"
                    ),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="revoked"),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="last use"),
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
                    "created_by",
                    models.CharField(
                        db_default="",
                        default="",
                        editable=False,
                        max_length=200,
                        verbose_name="created by",
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
                "verbose_name_plural": "API tokens",
                "db_table": "tenantqueue_apitoken",
                "ordering": ("tenant", "name"),
                "default_permissions": ("add", "change", "view"),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("revoked_at__isnull", True)),
                        fields=("tenant", "name"),
                        name="tenantqueue_apitoken_unique",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "scopes__regex",
                                "^(read|submit|http|tune)( (read|submit|http|tune))*$",
                            )
                        ),
                        name="tenantqueue_apitoken_scopes",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("min_priority__lte", models.F("max_priority"))),
                        name="tenantqueue_apitoken_priorities",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("requests_per_minute__isnull", True),
                            ("requests_per_minute__gte", 1),
                            _connector="OR",
                        ),
                        name="tenantqueue_apitoken_rate",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                ("tenant", models.CharField(blank=True, max_length=200)),
                ("digest", models.CharField(max_length=64)),
                ("status", models.SmallIntegerField(null=True)),
                (
                    "answer",
                    models.JSONField(
                        encoder=django.core.serializers.json.DjangoJSONEncoder, null=True
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "token",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenantqueue_api.apitoken",
                    ),
                ),
            ],
            options={
                "db_table": "tenantqueue_idempotencykey",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["created_at"], name="tenantqueue_idempotency_due")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("token", "key"), name="tenantqueue_idempotencykey_unique"
                    )
                ],
            },
        ),
    ]
