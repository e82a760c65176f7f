-- End monitors that have no details left: their anchor becomes ready, which runs the callback, once.
-- After lock_gates.sql and lock_additions.sql of the same READ COMMITTED transaction: its snapshot
-- shows every detail that was ever added, and no more can come.
-- Locks: the anchors, SKIP LOCKED: what an operator holds moves at the next sweep.
-- Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside, tenantqueue_job_monitor_aside,
-- the primary key.
WITH anchor AS MATERIALIZED (
    SELECT job.id
    FROM unnest(%(keys)s::text[]) AS given (key)
    JOIN tenantqueue_concurrentjobmonitor m ON m.id = given.key::bigint
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = m.anchor_id AND j.held_by = 'details'
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    WHERE m.cancelled_at IS NULL AND NOT m.keep_open
        -- not EXISTS, which may be answered by reading the lines of all monitors
        AND (
            SELECT true
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'monitor' AND j.monitor_id = m.id
            LIMIT 1
        ) IS NULL
        AND (
            SELECT true
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'task' AND j.monitor_id >= m.id AND j.monitor_id <= m.id
            -- so that no other index is as good
            ORDER BY j.monitor_id, j.id
            LIMIT 1
        ) IS NULL
        AND (
            SELECT true
            FROM tenantqueue_job_hot j
            WHERE j.monitor_id = m.id AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task')) AND j.id <> m.anchor_id
            LIMIT 1
        ) IS NULL
)
UPDATE tenantqueue_job_hot AS job
SET state = 'created', held_by = NULL
FROM anchor
WHERE job.id = anchor.id
RETURNING job.id
