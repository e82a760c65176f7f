-- Read the monitor that an unfinished job is a detail or the callback of.
-- Locks: none. Indexes: the primary key of waiting jobs, that of monitors.
SELECT
    m.id, m.name, m.tenant, m.priority, m.parallel, m.created_by, m.created_at,
    m.anchor_id = j.id AS is_callback
FROM tenantqueue_job_hot j
JOIN tenantqueue_concurrentjobmonitor m ON m.id = j.monitor_id
WHERE j.id = %(job_id)s::bigint
