"""The numbers of databases, and pins."""

import django.db.models.functions.datetime
from django.db import migrations, models

from django_tenantqueue.migrations._base import PostgresMigration

# A tenant gets no new queue in a database that it has left, or that it leaves or comes to now. A
# process whose pins are a second old would make one there. Queues of a move are retired at first.
TRIGGER = """
CREATE FUNCTION tenantqueue_check_shard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM tenantqueue_shardmove m WHERE m.tenant = NEW.tenant AND m.closed)
        OR EXISTS (
            SELECT
            FROM tenantqueue_shardpin p
            JOIN tenantqueue_shard s ON s.number <> p.shard
            WHERE p.tenant = NEW.tenant
        )
    THEN
        RAISE EXCEPTION 'the jobs of tenant % are in another database, or move there', NEW.tenant
            USING ERRCODE = 'serialization_failure', HINT = 'Try again in a few seconds.';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER tenantqueue_queue_shard BEFORE INSERT ON tenantqueue_tenantqueue
FOR EACH ROW WHEN (NOT NEW.retired)
EXECUTE FUNCTION tenantqueue_check_shard();
"""
UNDO = """
DROP TRIGGER tenantqueue_queue_shard ON tenantqueue_tenantqueue;
DROP FUNCTION tenantqueue_check_shard();
"""


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
                ("has_moves", models.BooleanField(db_default=False, default=False)),
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
        migrations.CreateModel(
            name="ShardMove",
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
                ("source", models.SmallIntegerField(verbose_name="source database")),
                ("target", models.SmallIntegerField(verbose_name="target database")),
                ("closed", models.BooleanField(db_default=False, default=False)),
                ("queues", models.JSONField(default=dict)),
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
                "verbose_name": "move of a tenant",
                "verbose_name_plural": "moves of tenants",
                "db_table": "tenantqueue_shardmove",
                "default_permissions": (),
            },
        ),
        migrations.RunSQL(TRIGGER, UNDO),
    ]
