-- The ready jobs of one queue that has a limit of them, counted up to that limit; no row when it
-- has none, or is not visible. Those that a worker has claimed do not count, and neither do those
-- that wait for their time or at a gate: no index has them by queue.
-- Indexes: tenantqueue_job_ready lane by lane, primary key of the queue.
WITH RECURSIVE
-- include: ready_lanes
SELECT
    wanted.most AS max_waiting,
-- include: count_ready
    AS waiting
FROM (
    SELECT q.id, q.max_waiting AS most
    FROM tenantqueue_tenantqueue q
    WHERE q.id = %(queue_id)s::integer AND q.max_waiting IS NOT NULL
) wanted
