"""Another action of the audit trail. Only what Django knows of the column changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenantqueue", "0004_failures"),
    ]

    operations = [
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
                    ("relane", "PRIORITY_SCOPE applied"),
                ],
                verbose_name="action",
            ),
        ),
    ]
