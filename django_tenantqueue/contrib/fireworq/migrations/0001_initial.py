"""What the Fireworq API keeps of a queue, and the indexes that it reads."""

import django.db.models.deletion
from django.db import migrations, models

from django_tenantqueue.migrations._base import PostgresMigration
from django_tenantqueue.migrations._indexes import add_indexes

# What waits for its time, queue by queue. Only jobs that wait for their time are in it.
OF_HOT = {"tenantqueue_job_deferred": "(queue_id, run_at, id) WHERE state = 'scheduled'"}
# Jobs that ended in error, queue by queue: by their ends, and by their ids. Others are in neither.
OF_HISTORY = {
    "tenantqueue_history_ended": "(queue_id, finished_at, id) WHERE state = 'error'",
    "tenantqueue_history_pushed": "(queue_id, id) WHERE state = 'error'",
}


class Migration(PostgresMigration):
    atomic = False
    initial = True

    dependencies = [("tenantqueue", "0001_initial")]

    operations = [
        # first: it can be done again when it was interrupted
        add_indexes(OF_HOT, OF_HISTORY),
        migrations.CreateModel(
            name="FireworqQueue",
            fields=[
                (
                    "queue",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenantqueue.tenantqueue",
                        verbose_name="queue",
                    ),
                ),
                (
                    "polling_interval",
                    models.IntegerField(null=True, verbose_name="polling interval"),
                ),
                ("pushes", models.BigIntegerField(default=0, verbose_name="pushes")),
                ("minute", models.DateTimeField(null=True, verbose_name="minute of the last push")),
                (
                    "pushes_in_minute",
                    models.IntegerField(default=0, verbose_name="pushes in that minute"),
                ),
                (
                    "pushes_before",
                    models.IntegerField(default=0, verbose_name="pushes in the minute before that"),
                ),
            ],
            options={
                "verbose_name": "queue of Fireworq clients",
                "verbose_name_plural": "queues of Fireworq clients",
                "db_table": "tenantqueue_fireworqqueue",
            },
        ),
    ]
