    -- A job `leaving` the line of its task returns to the gate of its monitor, user or exclusive
    -- key, or it becomes ready.
    (state, held_by) = (
        SELECT CASE WHEN next.gate IS NULL THEN 'ready' ELSE 'held' END, next.gate
        FROM (
            SELECT CASE
                WHEN job.monitor_id IS NOT NULL AND job.id <> (
                    SELECT m.anchor_id
                    FROM tenantqueue_concurrentjobmonitor m
                    WHERE m.id = job.monitor_id
                ) THEN 'monitor'
                WHEN job.limit_user IS NOT NULL THEN 'limit_user'
                WHEN job.exclusive_key IS NOT NULL THEN 'exclusive'
            END AS gate
        ) next
    )
-- not a join: planned for few rows, it would read all of them for each
WHERE job.id = ANY (ARRAY(SELECT leaving.id FROM leaving))
RETURNING
    job.id, job.lane, job.queue_id, job.priority, job.state = 'ready' AS is_ready,
    jsonb_build_array(
        CASE WHEN job.held_by = 'monitor' THEN job.monitor_id::text END, NULL,
        CASE WHEN job.held_by = 'limit_user' THEN job.limit_user END,
        CASE WHEN job.held_by = 'exclusive' THEN job.exclusive_key END
    )::text AS gates
