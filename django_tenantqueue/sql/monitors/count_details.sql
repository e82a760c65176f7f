-- Count the details of monitors by state, and read the columns that operators set, in one snapshot:
-- the caller's objects may be older. Details that succeeded are the remainder of those added, since
-- history may be dropped.
-- Locks: none. Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside,
-- tenantqueue_job_monitor_aside, the primary key, tenantqueue_history_monitor.
SELECT
    m.id,
    (
        SELECT coalesce(sum(a.details), 0)
        FROM tenantqueue_monitoraddition a
        WHERE a.monitor_id = m.id
    ),
    line.jobs, inside.ready, inside.running, inside.waiting, ended.failed, ended.cancelled,
    anchor.state AS anchor_state, anchor.held_by AS anchor_line,
    m.cancelled_at IS NOT NULL, m.paused, m.keep_open, m.parallel, m.stop_after_failures,
    aside.jobs AS aside
FROM tenantqueue_concurrentjobmonitor m
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'monitor' AND j.monitor_id = m.id
) line
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE j.id <> m.anchor_id AND j.state IN ('created', 'held')) AS ready,
        count(*) FILTER (WHERE j.id <> m.anchor_id AND j.state IN ('queued', 'running')) AS running,
        count(*) FILTER (WHERE j.id <> m.anchor_id AND j.state = 'scheduled') AS waiting
    FROM tenantqueue_job_hot j
    WHERE j.monitor_id = m.id AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
) inside
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'task' AND j.monitor_id = m.id AND j.id <> m.anchor_id
) aside
LEFT JOIN LATERAL (
    SELECT j.state, j.held_by
    FROM tenantqueue_job_hot j
    WHERE j.id = m.anchor_id
    OFFSET 0
) anchor ON true
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE j.state = 'error') AS failed,
        count(*) FILTER (WHERE j.state = 'cancelled') AS cancelled
    FROM tenantqueue_job_history j
    WHERE j.monitor_id = m.id AND j.state IN ('error', 'cancelled') AND j.id <> m.anchor_id
) ended
WHERE m.id = ANY (%(ids)s::bigint[])
