"""The numbers of databases, and pins."""

import django.db.models.functions.datetime
from django.db import migrations, models

from django_tenantqueue.migrations._base import PostgresMigration


class Migration(PostgresMigration):
    initial = True

    dependencies = [("tenantqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Shard",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("number", models.SmallIntegerField(verbose_name="number")),
                ("version", models.BigIntegerField(default=0)),
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
                "verbose_name": "shard",
                "verbose_name_plural": "shards",
                "db_table": "tenantqueue_shard",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="tenantqueue_shard_one"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ShardPin",
            fields=[
                (
                    "tenant",
                    models.CharField(
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        verbose_name="tenant",
                    ),
                ),
                ("shard", models.SmallIntegerField(verbose_name="shard")),
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
                "verbose_name": "pinned tenant",
                "verbose_name_plural": "pinned tenants",
                "db_table": "tenantqueue_shardpin",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("tenant", ""), _negated=True),
                        name="tenantqueue_shardpin_tenant",
                    )
                ],
            },
        ),
    ]
