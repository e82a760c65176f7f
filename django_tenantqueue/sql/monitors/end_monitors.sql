-- End monitors that have no details left: their anchor becomes ready and runs the callback, once.
-- Runs after lock_gates.sql and try_gates.sql (for additions) in the same READ COMMITTED
-- transaction: it sees every detail that was ever added, and no more can come.
-- Locks: the anchors, SKIP LOCKED: the next sweep moves those that an operator holds.
-- Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside,
-- tenantqueue_job_monitor_aside, the primary key.
WITH given AS MATERIALIZED (
    SELECT unnest(%(keys)s::text[])::bigint AS key
),
-- include: monitor_room
, anchor AS MATERIALIZED (
    SELECT job.id
    FROM room
    JOIN gate ON gate.id = room.id
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = gate.anchor_id AND j.held_by = 'details'
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    WHERE room.may_end
)
UPDATE tenantqueue_job_hot AS job
SET state = 'ready', held_by = NULL
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (ARRAY(SELECT anchor.id FROM anchor))
RETURNING job.id
