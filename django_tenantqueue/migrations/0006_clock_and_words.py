"""How far the clock of a worker's machine is ahead. A column with a default: no row is rewritten."""

from django.db import migrations, models

from ._base import PostgresMigration


class Migration(PostgresMigration):
    dependencies = [
        ("tenantqueue", "0004_failures"),
    ]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="clock_ahead_seconds",
            field=models.FloatField(
                db_default=0, default=0, verbose_name="clock ahead of the server's, in seconds"
            ),
        ),
    ]
