-- Sum a monitor up: when it was started, how many details it was given, how many have not ended,
-- have failed or were cancelled, and when the last one ended.
-- Locks: none. Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside,
-- tenantqueue_job_monitor_aside, tenantqueue_history_monitor, without the rows.
SELECT
    m.created_at,
    (
        SELECT coalesce(sum(a.details), 0)
        FROM tenantqueue_monitoraddition a
        WHERE a.monitor_id = m.id
    ) AS added,
    line.jobs + inside.jobs + aside.jobs AS unfinished, ended.failed, ended.cancelled,
    newest.finished_at
FROM tenantqueue_concurrentjobmonitor m
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'monitor' AND j.monitor_id = m.id
) line
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE j.id <> m.anchor_id) AS jobs
    FROM tenantqueue_job_hot j
    WHERE j.monitor_id = m.id AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
) inside
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE j.id <> m.anchor_id) AS jobs
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'task' AND j.monitor_id = m.id
) aside
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE j.state = 'error') AS failed,
        count(*) FILTER (WHERE j.state = 'cancelled') AS cancelled
    FROM tenantqueue_job_history j
    WHERE j.monitor_id = m.id AND j.state IN ('error', 'cancelled') AND j.id <> m.anchor_id
) ended
CROSS JOIN LATERAL (
    SELECT max(last.finished_at) AS finished_at
    FROM unnest(ARRAY['success', 'error', 'cancelled']) AS state (name)
    CROSS JOIN LATERAL (
        SELECT j.finished_at
        FROM tenantqueue_job_history j
        WHERE j.monitor_id = m.id AND j.state = state.name AND j.id <> m.anchor_id
        ORDER BY j.finished_at DESC
        LIMIT 1
    ) last
) newest
WHERE m.id = %(monitor_id)s::bigint
