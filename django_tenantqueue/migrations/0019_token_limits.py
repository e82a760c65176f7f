"""Which queues and priorities the jobs of a token may name."""

from django.db import migrations, models

from ._base import PostgresMigration


class Migration(PostgresMigration):
    dependencies = [("tenantqueue", "0018_fireworq")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="queues",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text=(
                    "Queues that the token may name, separated by commas. * stands for any text. Empty: queues "
                    "that the tenant has, and those that a task or the settings name."
                ),
                max_length=1000,
                verbose_name="queues",
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="min_priority",
            field=models.SmallIntegerField(
                db_default=0,
                default=0,
                help_text="Priorities that the token may give. Lower numbers run first.",
                verbose_name="priorities from",
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="max_priority",
            field=models.SmallIntegerField(
                db_default=400, default=400, verbose_name="priorities to"
            ),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(min_priority__lte=models.F("max_priority")),
                name="tenantqueue_apitoken_priorities",
            ),
        ),
    ]
