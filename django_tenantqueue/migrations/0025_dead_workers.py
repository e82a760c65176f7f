"""Deaths of workers in the list of changes, and alert rules about them."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenantqueue", "0025_held_alerts"),
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
                help_text="For failures and dead workers: those of this number of minutes count.",
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1440),
                ],
                verbose_name="range",
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
                        ),
                    )
                ),
                name="tenantqueue_alertrule_kind",
            ),
        ),
    ]
