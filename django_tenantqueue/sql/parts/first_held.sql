-- The held job of `line` (queue_id, held_by) that has been due for longest, since when it is due,
-- and the number of held jobs up to `most`.
CROSS JOIN LATERAL (
    SELECT
        CASE line.held_by
            WHEN 'monitor' THEN j.monitor_id::text
            WHEN 'session' THEN j.session_key
            WHEN 'limit_user' THEN j.limit_user
            WHEN 'exclusive' THEN j.exclusive_key
            ELSE j.task
        END AS key,
        greatest(
            0, extract(epoch FROM clock_timestamp() - greatest(j.created_at, j.run_at))
        )::float8 AS waits
    FROM tenantqueue_job_hot j
    WHERE j.queue_id = line.queue_id AND j.held_by = line.held_by
    ORDER BY j.queue_id, j.held_by, j.run_at
    LIMIT 1
) first
CROSS JOIN LATERAL (
    SELECT count(*)::integer AS jobs
    FROM (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE j.queue_id = line.queue_id AND j.held_by = line.held_by
        LIMIT %(most)s::integer
    ) counted
) held
CROSS JOIN LATERAL (
    SELECT q.tenant, q.name
    FROM tenantqueue_tenantqueue q
    WHERE q.id = line.queue_id
    OFFSET 0
) queue
