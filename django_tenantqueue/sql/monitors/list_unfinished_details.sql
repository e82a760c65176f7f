-- List the details of a monitor that are in flight (with its anchor), in its line, and in the lines
-- of their tasks: at most `most` of each, by id, above `after`. `part` is the count of them that
-- includes the job.
-- Locks: none. Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside,
-- tenantqueue_job_monitor_aside.
SELECT
    job.id, CASE WHEN job.id = m.anchor_id THEN 'anchor' ELSE job.part END AS part, job.is_asked
FROM tenantqueue_concurrentjobmonitor m
CROSS JOIN LATERAL (
    (
        SELECT
            j.id, j.cancel_requested_at IS NOT NULL AS is_asked,
            CASE
                WHEN j.worker_id IS NOT NULL THEN 'running'
                WHEN j.state = 'scheduled' THEN 'retrying'
                ELSE 'ready'
            END AS part
        FROM tenantqueue_job_hot j
        WHERE j.monitor_id = m.id AND j.id > %(after)s::bigint
            AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
        -- not "j.id": the primary key would give that order, too, and holds all other jobs
        ORDER BY j.id + 0
        LIMIT %(most)s::integer
    )
    UNION ALL
    (
        SELECT j.id, false, 'in_line'
        FROM tenantqueue_job_hot j
        -- not "=": see release_monitors.sql
        WHERE j.held_by = 'monitor' AND j.monitor_id <= m.id
            AND (j.monitor_id, j.id) > (m.id, %(after)s::bigint)
        ORDER BY j.monitor_id, j.id
        LIMIT %(most)s::integer
    )
    UNION ALL
    (
        SELECT j.id, false, 'aside'
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task' AND j.monitor_id <= m.id
            AND (j.monitor_id, j.id) > (m.id, %(after)s::bigint)
        ORDER BY j.monitor_id, j.id
        LIMIT %(most)s::integer
    )
) job
WHERE m.id = %(monitor_id)s::bigint
