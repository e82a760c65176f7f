"""What a job enqueues when it ends. Columns without a default: no row is rewritten.

The job table is locked for a moment. While open transactions keep it from being locked, each try
gives up after 100 ms, so that claims and enqueues behind it go on.
"""

from django.db import migrations, models

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
FUNCTIONS = """
-- The follow-ups of a job that ends in `state`: those that are enqueued get their ids.
CREATE FUNCTION tenantqueue_due_follow_ups(follow_ups jsonb, state text) RETURNS jsonb
LANGUAGE sql VOLATILE
RETURN (
    SELECT jsonb_agg(
        CASE
            WHEN state = 'success' OR f.value ->> 'on' = 'end'
                THEN f.value || jsonb_build_object('id', nextval('tenantqueue_job_id_seq'))
            ELSE f.value - 'id'
        END
        ORDER BY f.ordinality
    )
    FROM jsonb_array_elements(follow_ups) WITH ORDINALITY f
);

-- Follow-ups without what only their own jobs need: no arguments, and nothing behind them.
CREATE FUNCTION tenantqueue_short_follow_ups(follow_ups jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE
RETURN (
    SELECT jsonb_agg(f.value - '{args,context,follow_ups}'::text[] ORDER BY f.ordinality)
    FROM jsonb_array_elements(follow_ups) WITH ORDINALITY f
)
"""
DROP_FUNCTIONS = """
DROP FUNCTION tenantqueue_due_follow_ups(jsonb, text);
DROP FUNCTION tenantqueue_short_follow_ups(jsonb)
"""


class Migration(migrations.Migration):
    dependencies = [("tenantqueue", "0012_retentionrule")]
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
