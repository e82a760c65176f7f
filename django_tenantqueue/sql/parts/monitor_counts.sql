-- FROM: monitors `m` with the numbers of their details: all that were `added`, the unfinished ones
-- (`line`, `inside`, `aside`), and those that `ended` in error or by a cancellation.
FROM tenantqueue_concurrentjobmonitor m
CROSS JOIN LATERAL (
    SELECT coalesce(sum(a.details), 0) AS details
    FROM tenantqueue_monitoraddition a
    WHERE a.monitor_id = m.id
) added
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'monitor' AND j.monitor_id = m.id
) line
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE j.id <> m.anchor_id AND j.state IN ('ready', 'held')) AS ready,
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
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE j.state = 'error') AS failed,
        count(*) FILTER (WHERE j.state = 'cancelled') AS cancelled
    FROM tenantqueue_job_history j
    WHERE j.monitor_id = m.id AND j.state IN ('error', 'cancelled') AND j.id <> m.anchor_id
) ended
