"""What a job enqueues when it ends. Columns without a default: no row is rewritten."""

from pathlib import Path

from django.db import migrations, models

from ._base import PostgresMigration

ADD_COLUMNS = """
ALTER TABLE tenantqueue_job ADD COLUMN previous_id bigint, ADD COLUMN follow_ups jsonb
"""
DROP_COLUMNS = """
ALTER TABLE tenantqueue_job DROP COLUMN previous_id, DROP COLUMN follow_ups
"""
FUNCTIONS = (Path(__file__).parent / "0017_follow_ups.sql").read_text()
DROP_FUNCTIONS = """
DROP FUNCTION tenantqueue_enqueue_follow_ups(bigint, smallint, smallint, jsonb, text);
DROP FUNCTION tenantqueue_short_follow_ups(jsonb)
"""


class Migration(PostgresMigration):
    dependencies = [("tenantqueue", "0016_executor")]
    operations = [
        migrations.RunSQL(FUNCTIONS, DROP_FUNCTIONS),
        migrations.RunSQL(
            ADD_COLUMNS,
            DROP_COLUMNS,
            state_operations=[
                migrations.AddField(
                    model_name="job",
                    name="previous_id",
                    field=models.BigIntegerField(null=True, verbose_name="after job"),
                ),
                migrations.AddField(
                    model_name="job",
                    name="follow_ups",
                    field=models.JSONField(null=True, verbose_name="follow-ups"),
                ),
            ],
        ),
    ]
