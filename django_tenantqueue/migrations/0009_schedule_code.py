from django.db import migrations, models

from ._base import PostgresMigration


class Migration(PostgresMigration):
    dependencies = [("tenantqueue", "0008_schedule")]

    operations = [
        migrations.AddIndex(
            model_name="schedule",
            index=models.Index(
                condition=models.Q(("source", "admin"), _negated=True),
                fields=["id"],
                name="tenantqueue_schedule_code",
            ),
        ),
    ]
