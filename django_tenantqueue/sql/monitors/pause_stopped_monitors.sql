-- Pause monitors that have stopped after failures, before the part of the history that shows these
-- is emptied: they would continue by themselves. Record it.
-- Runs once for each leaf, in the transaction that empties it. Locks: the monitors' rows.
-- Indexes: the primary key of waiting jobs, tenantqueue_history_monitor.
WITH stopped AS (
    UPDATE tenantqueue_concurrentjobmonitor AS m
    SET paused = true
    WHERE m.stop_after_failures IS NOT NULL AND NOT m.paused AND m.cancelled_at IS NULL
        AND EXISTS (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.id = m.anchor_id AND j.held_by IN ('details', 'session')
        )
        AND m.stop_after_failures <=
-- include: failures
    RETURNING m.id, m.tenant, m.name
)
INSERT INTO tenantqueue_change (
    actor, source, action, object_kind, object_ids, object_count, object_label, tenant,
    before, after
)
SELECT
    'worker', 'worker', 'pause', 'monitor', ARRAY[id], 1, name, tenant,
    '{"paused": false}'::jsonb, '{"paused": true}'::jsonb
FROM stopped
