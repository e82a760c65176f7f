-- List the details of a monitor that are in flight, and its anchor, at most `most`, by id.
-- Locks: none. Index: tenantqueue_job_monitor_inside.
SELECT
    j.id, j.state, j.worker_id IS NOT NULL AS has_slot,
    j.cancel_requested_at IS NOT NULL AS is_asked
FROM tenantqueue_job_hot j
WHERE j.monitor_id = %(monitor_id)s::bigint
    AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
-- not "j.id": the primary key would give that order, too, and holds all other jobs
ORDER BY j.id + 0
LIMIT %(most)s::integer
