"""Status links are no longer revoked by rows: TENANTQUEUE["STATUS_SALT"] makes them invalid."""

from django.db import migrations

from ._base import PostgresMigration


class Migration(PostgresMigration):
    dependencies = [
        ("tenantqueue", "0022_alert_kinds"),
    ]

    operations = [
        migrations.DeleteModel(name="StatusLinkRevocation"),
    ]
