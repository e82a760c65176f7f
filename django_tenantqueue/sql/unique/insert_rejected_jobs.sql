-- Store jobs that are not to run since their keys are others': in the history, as cancelled, each
-- element of `args` with its own of `keys` and the reason in `errors`. Locks: none.
-- Returns no row when the queue is retired, or is not visible: see insert_job.sql.
INSERT INTO tenantqueue_job_history (
    id, queue_id, lane, priority, is_async, final, state, finished_at, run_at, expires_at,
    max_attempts, timeout_seconds, hard_timeout_seconds, name, source_type, source_id, source_method,
    args, labels, created_by, context, monitor_id, session_key, session_skip, session_halt, user_key,
    exclusive_key, unique_key, unique_mode, errors
)
SELECT
    nextval('tenantqueue_job_id_seq'),
    %(queue_id)s::integer, %(lane)s::smallint, %(priority)s::smallint, %(is_async)s::boolean,
    true, 'cancelled', clock_timestamp(),
    coalesce(
        %(run_at)s::timestamptz,
        clock_timestamp() + make_interval(secs => %(delay_seconds)s::float8)
    ),
    %(expires_at)s::timestamptz, %(max_attempts)s::smallint,
    %(timeout_seconds)s::float8, %(hard_timeout_seconds)s::float8,
    %(name)s::text, %(source_type)s::text, %(source_id)s::text,
    %(source_method)s::text, element.args, %(labels)s::text[], %(created_by)s::text,
    %(context)s::jsonb, %(monitor_id)s::bigint, %(session_key)s::text, %(session_skip)s::boolean,
    %(session_halt)s::boolean, %(user_key)s::text,
    CASE WHEN %(excludes)s::boolean THEN element.key END, element.key, %(unique_mode)s::text,
    jsonb_build_array(element.error)
FROM ROWS FROM (
    jsonb_array_elements(%(args)s::jsonb), unnest(%(keys)s::text[]),
    jsonb_array_elements(%(errors)s::jsonb)
) AS element (args, key, error)
RETURNING id
