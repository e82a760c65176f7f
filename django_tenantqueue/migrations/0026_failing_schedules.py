"""Alert rules about schedules that fail."""

import django.core.validators
from django.db import migrations, models

KINDS = (
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
)


class Migration(migrations.Migration):
    dependencies = [("tenantqueue", "0025_dead_workers")]
    operations = [
        migrations.RemoveConstraint(model_name="alertrule", name="tenantqueue_alertrule_kind"),
        migrations.AlterField(
            model_name="alertrule",
            name="kind",
            field=models.CharField(choices=[*KINDS], max_length=20, verbose_name="alert on"),
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="threshold",
            field=models.FloatField(
                blank=True,
                help_text=(
                    "Waiting jobs; percent of failed runs; number of failed jobs, or of failures "
                    "of a schedule in a row; for a long wait, held jobs, no worker and a late "
                    "schedule: seconds. Empty: the default of the kind."
                ),
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(10000000.0),
                ],
                verbose_name="threshold",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", tuple(kind for kind, _ in KINDS))),
                name="tenantqueue_alertrule_kind",
            ),
        ),
    ]
