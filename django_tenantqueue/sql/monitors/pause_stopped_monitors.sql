-- Pause monitors that stand still because so many of their details have failed, before the part of the
-- history is emptied that shows it: they would go on by themselves.
-- Runs once for each leaf, in the transaction that empties it. Locks: the monitors' rows.
-- Indexes: the primary key of waiting jobs, tenantqueue_history_monitor.
UPDATE tenantqueue_concurrentjobmonitor AS m
SET paused = true
WHERE m.stop_after_failures IS NOT NULL AND NOT m.paused AND m.cancelled_at IS NULL
    AND EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE j.id = m.anchor_id AND j.held_by IN ('details', 'session')
    )
    AND m.stop_after_failures <= (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_history j
            WHERE j.monitor_id = m.id AND j.state = 'error' AND j.id <> m.anchor_id
            LIMIT coalesce(m.stop_after_failures, 0)
        ) failure
    )
