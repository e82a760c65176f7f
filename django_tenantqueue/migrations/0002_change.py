"""The audit trail. A new table: nothing that runs waits for it."""

import django.core.serializers.json
import django.db.models.functions.datetime
from django.db import migrations, models

import django_tenantqueue.models.fields

from ._base import PostgresMigration


class Migration(PostgresMigration):
    dependencies = [
        ("tenantqueue", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "made_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="when",
                    ),
                ),
                (
                    "actor",
                    models.TextField(blank=True, db_default="", default="", verbose_name="who"),
                ),
                (
                    "source",
                    models.TextField(
                        choices=[
                            ("admin", "admin"),
                            ("command", "command"),
                            ("api", "API"),
                            ("code", "code"),
                            ("worker", "worker"),
                        ],
                        verbose_name="from",
                    ),
                ),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("add", "added"),
                            ("tune", "tuned"),
                            ("pause", "paused"),
                            ("resume", "resumed"),
                            ("halt", "halted"),
                            ("retire", "retired"),
                            ("reopen", "taken back from retirement"),
                            ("delete", "deleted"),
                            ("drain", "told to drain"),
                            ("stop", "told to stop"),
                            ("cancel", "cancelled"),
                            ("retry", "retried"),
                            ("enqueue_again", "enqueued again"),
                            ("run_now", "made due now"),
                            ("set_priority", "priority changed"),
                            ("set_run_at", "time changed"),
                            ("move", "moved"),
                            ("enable", "enabled"),
                            ("disable", "disabled"),
                            ("relane", "PRIORITY_SCOPE applied"),
                            ("revoke", "revoked"),
                            ("erase", "tenant erased"),
                        ],
                        verbose_name="action",
                    ),
                ),
                (
                    "object_kind",
                    models.TextField(
                        choices=[
                            ("queue", "tenant queue"),
                            ("session", "session"),
                            ("user_cap", "user cap"),
                            ("task", "task control"),
                            ("monitor", "monitor"),
                            ("worker", "worker"),
                            ("job", "job"),
                            ("schedule", "schedule"),
                            ("alert_rule", "alert rule"),
                            ("retention", "retention rule"),
                            ("api_token", "API token"),
                            ("routing", "routing"),
                        ],
                        verbose_name="kind",
                    ),
                ),
                (
                    "object_ids",
                    django_tenantqueue.models.fields.NumberListField(
                        default=list, verbose_name="ids"
                    ),
                ),
                ("object_count", models.BigIntegerField(default=1, verbose_name="objects")),
                (
                    "object_label",
                    models.TextField(blank=True, db_default="", default="", verbose_name="object"),
                ),
                (
                    "tenant",
                    models.TextField(blank=True, db_default="", default="", verbose_name="tenant"),
                ),
                (
                    "before",
                    models.JSONField(
                        default=dict,
                        encoder=django.core.serializers.json.DjangoJSONEncoder,
                        verbose_name="before",
                    ),
                ),
                (
                    "after",
                    models.JSONField(
                        default=dict,
                        encoder=django.core.serializers.json.DjangoJSONEncoder,
                        verbose_name="after",
                    ),
                ),
            ],
            options={
                "verbose_name": "change",
                "verbose_name_plural": "changes",
                "ordering": ("-id",),
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["actor", "id"], name="tenantqueue_change_actor"),
                    models.Index(fields=["source", "id"], name="tenantqueue_change_source"),
                    models.Index(fields=["action", "id"], name="tenantqueue_change_action"),
                    models.Index(fields=["object_kind", "id"], name="tenantqueue_change_kind"),
                    models.Index(
                        fields=["object_label", "object_kind", "id"],
                        name="tenantqueue_change_label",
                    ),
                    models.Index(fields=["tenant", "id"], name="tenantqueue_change_tenant"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("object_count__gte", 1)),
                        name="tenantqueue_change_object_count",
                    )
                ],
            },
        ),
        migrations.RunSQL(
            "CREATE INDEX tenantqueue_change_ids ON tenantqueue_change USING gin (object_ids)",
            "DROP INDEX tenantqueue_change_ids",
        ),
    ]
