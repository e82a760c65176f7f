-- Make the anchor of a new monitor: a job that takes the monitor's turn in its session, if it has one,
-- waits for its last detail, and then runs the callback.
INSERT INTO tenantqueue_job_hot (
    id, queue_id, lane, priority, is_async, state, held_by, run_at, expires_at, max_attempts,
    timeout_seconds, hard_timeout_seconds, name, source_type, source_id, source_method, args, labels,
    created_by, context, monitor_id, session_key
)
SELECT
    %(id)s::bigint, %(queue_id)s::integer, %(lane)s::smallint, %(priority)s::smallint,
    %(is_async)s::boolean, 'held',
    CASE WHEN %(session_key)s::text IS NULL THEN 'details' ELSE 'session' END,
    clock_timestamp(), %(expires_at)s::timestamptz, %(max_attempts)s::smallint,
    %(timeout_seconds)s::float8, %(hard_timeout_seconds)s::float8, %(name)s::text,
    %(source_type)s::text, %(source_id)s::text, %(source_method)s::text, %(args)s::jsonb,
    %(labels)s::text[], %(created_by)s::text, %(context)s::jsonb, %(monitor_id)s::bigint,
    %(session_key)s::text
RETURNING id
