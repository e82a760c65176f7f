"""What a job enqueues when it ends. Columns without a default: no row is rewritten.

The job table is locked for a moment. While open transactions keep it from being locked, each try
gives up after 100 ms, so that claims and enqueues behind it go on.
"""

from pathlib import Path

from django.db import migrations, models

from ._base import PostgresMigration

LOCK = """
DO $lock$
BEGIN
    PERFORM set_config('lock_timeout', '100ms', true);
    FOR i IN 1..600 LOOP
        BEGIN
            LOCK TABLE tenantqueue_job IN ACCESS EXCLUSIVE MODE;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep(0.1);
        END;
    END LOOP;
    RAISE lock_not_available USING MESSAGE =
        'open transactions have kept the job table from being locked for two minutes: '
        'run this migration again when they have ended';
END
$lock$
"""
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
            f"{LOCK}; {ADD_COLUMNS}",
            f"{LOCK}; {DROP_COLUMNS}",
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
