-- List the first details in the line of a monitor, and those in the lines of their tasks, at most
-- `most` of each.
-- Locks: none. Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_aside.
(
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'monitor'
        -- not "=": see release_monitors.sql
        AND j.monitor_id >= %(monitor_id)s::bigint AND j.monitor_id <= %(monitor_id)s::bigint
    ORDER BY j.monitor_id, j.id
    LIMIT %(most)s::integer
)
UNION ALL
(
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'task'
        AND j.monitor_id >= %(monitor_id)s::bigint AND j.monitor_id <= %(monitor_id)s::bigint
    ORDER BY j.monitor_id, j.id
    LIMIT %(most)s::integer
)
