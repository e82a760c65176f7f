-- The ready jobs of one queue that has a limit of them, counted up to that limit; no row when it has
-- none, or is not visible. Those that a worker has claimed do not count, and neither do those that
-- wait for their time or at a gate: no index has them by queue.
-- Indexes: tenantqueue_job_ready lane by lane, primary key of the queue.
WITH RECURSIVE
-- include: ready_lanes
SELECT
    q.max_waiting,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM level
            CROSS JOIN LATERAL (
                SELECT
                FROM tenantqueue_job_hot j
                WHERE j.state = 'created' AND j.lane = level.lane AND j.queue_id = q.id
                LIMIT q.max_waiting
            ) job
            LIMIT q.max_waiting
        ) ready
    ) AS waiting
FROM tenantqueue_tenantqueue q
WHERE q.id = %(queue_id)s::integer AND q.max_waiting IS NOT NULL
