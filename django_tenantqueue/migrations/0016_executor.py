"""Executors of tenant queues, and the roles of worker processes: columns with constant defaults."""

from django.db import migrations, models

from ._base import PostgresMigration


class Migration(PostgresMigration):
    dependencies = [("tenantqueue", "0015_status_links")]
    operations = [
        migrations.AddField(
            model_name="tenantqueue",
            name="executor",
            field=models.CharField(
                blank=True,
                help_text="Where its jobs run: an executor of the settings, or, when empty, the workers. Jobs that have been claimed run where they are.",
                max_length=100,
                null=True,
                verbose_name="executor",
            ),
        ),
        migrations.AddConstraint(
            model_name="tenantqueue",
            constraint=models.CheckConstraint(
                condition=models.Q(("executor", ""), _negated=True),
                name="tenantqueue_queue_executor",
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="role",
            field=models.CharField(
                choices=[
                    ("worker", "worker"),
                    ("dispatcher", "dispatcher"),
                    ("runner", "process of an executor"),
                ],
                db_default="worker",
                default="worker",
                max_length=10,
                verbose_name="role",
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="executor",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Whose jobs it sends, or runs. Empty: the workers' own.",
                max_length=100,
                verbose_name="executor",
            ),
        ),
    ]
