"""Alert rules about held jobs, dead workers and failing schedules; deaths in the list of changes."""

import django.core.validators
from django.db import migrations, models

from ._base import PostgresMigration


class Migration(PostgresMigration):
    dependencies = [
        ("tenantqueue", "0021_held"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="alertrule",
            name="tenantqueue_alertrule_kind",
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="kind",
            field=models.CharField(
                choices=[
                    ("waiting", "too many waiting jobs"),
                    ("wait", "long wait"),
                    ("failure_rate", "high failure rate"),
                    ("no_worker", "no worker"),
                    ("late_schedule", "late schedule"),
                    ("halted_session", "halted session"),
                    ("stopped_monitor", "stopped monitor"),
                    ("failed_job", "failed jobs"),
                    ("held", "held jobs"),
                    ("dead_worker", "dead worker"),
                    ("failing_schedule", "failing schedule"),
                ],
                max_length=20,
                verbose_name="alert on",
            ),
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="range_minutes",
            field=models.IntegerField(
                db_default=60,
                default=60,
                help_text="Failures and deaths of workers in this number of minutes count.",
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1440),
                ],
                verbose_name="range",
            ),
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="threshold",
            field=models.FloatField(
                blank=True,
                help_text="Waiting jobs; percent of failed runs; number of failed jobs, or of failures of a schedule in a row; for a long wait, held jobs, no worker and a late schedule: seconds. Empty: the default of the kind.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(10000000.0),
                ],
                verbose_name="threshold",
            ),
        ),
        migrations.AlterField(
            model_name="change",
            name="action",
            field=models.TextField(
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
                    ("die", "died"),
                ],
                verbose_name="action",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        (
                            "waiting",
                            "wait",
                            "failure_rate",
                            "no_worker",
                            "late_schedule",
                            "halted_session",
                            "stopped_monitor",
                            "failed_job",
                            "held",
                            "dead_worker",
                            "failing_schedule",
                        ),
                    )
                ),
                name="tenantqueue_alertrule_kind",
            ),
        ),
    ]
