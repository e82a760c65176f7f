-- Enqueue many jobs that differ in their arguments only: `args` is one JSON array with an element
-- for each. Ids rise in the order of the array. Otherwise as insert_job.sql, but a queue with a limit of
-- its waiting jobs takes them when the caller has seen that it `has_room`.
INSERT INTO tenantqueue_job_hot (
    id, queue_id, lane, priority, is_async, state, run_at, expires_at, max_attempts,
    timeout_seconds, hard_timeout_seconds, name, source_type, source_id, source_method, args, labels, created_by, context
)
SELECT
    nextval('tenantqueue_job_id_seq'),
    %(queue_id)s::integer, %(lane)s::smallint, %(priority)s::smallint, %(is_async)s::boolean,
    due.state, due.at, %(expires_at)s::timestamptz, %(max_attempts)s::smallint,
    %(timeout_seconds)s::float8, %(hard_timeout_seconds)s::float8,
    %(name)s::text, %(source_type)s::text, %(source_id)s::text,
    %(source_method)s::text, element.args, %(labels)s::text[], %(created_by)s::text,
    %(context)s::jsonb
FROM (
    SELECT
        moment.at,
        CASE WHEN moment.at > clock_timestamp() THEN 'scheduled' ELSE 'created' END AS state
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
CROSS JOIN jsonb_array_elements(%(args)s::jsonb) AS element (args)
RETURNING id
