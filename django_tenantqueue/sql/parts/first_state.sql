-- When new jobs may run, and their first state. No row when their queue is retired, not visible to
-- this snapshot (unless `unseen`), or has a limit that was not looked at (`has_room`). A job of a
-- session or monitor takes its place in the line at once, whenever it may run; one that has other
-- gates comes to them when its time has come.
due AS MATERIALIZED (
    SELECT
        moment.at,
        CASE
            WHEN %(held_by)s::text IN ('monitor', 'session') THEN 'held'
            WHEN moment.at > clock_timestamp() THEN 'scheduled'
            WHEN %(held_by)s::text IS NOT NULL THEN 'held'
            ELSE 'ready'
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
)
