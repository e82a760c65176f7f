-- Enqueue jobs that have gates to pass, or whose queue has a limit of its waiting jobs: as
-- insert_jobs.sql, with those columns. `exclusive_keys` has an element for each job, or is NULL.
-- `held_by` is the first gate. A job of a session or monitor takes its place in the line at once,
-- whenever it may run; one that has other gates comes to them when its time has come.
INSERT INTO tenantqueue_job_hot (
    id, queue_id, lane, priority, is_async, state, held_by, run_at, expires_at, max_attempts,
    timeout_seconds, hard_timeout_seconds, name, source_type, source_id, source_method, args, labels,
    created_by, context, monitor_id, session_key, session_skip, session_halt, user_key, exclusive_key,
    unique_mode
)
SELECT
    nextval('tenantqueue_job_id_seq'),
    %(queue_id)s::integer, %(lane)s::smallint, %(priority)s::smallint, %(is_async)s::boolean,
    due.state, CASE WHEN due.state = 'held' THEN %(held_by)s::text END,
    due.at, %(expires_at)s::timestamptz, %(max_attempts)s::smallint,
    %(timeout_seconds)s::float8, %(hard_timeout_seconds)s::float8,
    %(name)s::text, %(source_type)s::text, %(source_id)s::text,
    %(source_method)s::text, element.args, %(labels)s::text[], %(created_by)s::text,
    %(context)s::jsonb, %(monitor_id)s::bigint, %(session_key)s::text, %(session_skip)s::boolean,
    %(session_halt)s::boolean, %(user_key)s::text, element.exclusive_key, %(unique_mode)s::text
FROM (
    SELECT
        moment.at,
        CASE
            WHEN %(held_by)s::text IN ('monitor', 'session') THEN 'held'
            WHEN moment.at > clock_timestamp() THEN 'scheduled'
            WHEN %(held_by)s::text IS NOT NULL THEN 'held'
            ELSE 'created'
        END AS state
    FROM (
        SELECT coalesce(
            %(run_at)s::timestamptz,
            clock_timestamp() + make_interval(secs => %(delay_seconds)s::float8)
        ) AS at
    ) moment
    LEFT JOIN tenantqueue_tenantqueue q ON q.id = %(queue_id)s::integer
    WHERE NOT coalesce(
        q.retired OR (q.max_waiting IS NOT NULL AND NOT %(has_room)s::boolean),
        NOT %(unseen)s::boolean
    )
    OFFSET 0
) due
CROSS JOIN ROWS FROM (
    jsonb_array_elements(%(args)s::jsonb), unnest(%(exclusive_keys)s::text[])
) AS element (args, exclusive_key)
RETURNING id, state
