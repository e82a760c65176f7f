-- List the first details in the line of a monitor, at most `most`.
-- Locks: none. Index: tenantqueue_job_monitor_line.
SELECT j.id
FROM tenantqueue_job_hot j
WHERE j.held_by = 'monitor'
    -- not "=": see release_monitors.sql
    AND j.monitor_id >= %(monitor_id)s::bigint AND j.monitor_id <= %(monitor_id)s::bigint
ORDER BY j.monitor_id, j.id
LIMIT %(most)s::integer
