-- Running and waiting jobs of some queues, counted up to `running` and `waiting` in each (a result
-- of that many means "that many or more"), and how long the first ready job of a lane has waited,
-- at most.
-- Indexes: tenantqueue_job_slots, and tenantqueue_job_ready lane by lane.
WITH RECURSIVE
-- include: ready_lanes
SELECT
    wanted.id,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.queue_id = wanted.id AND j.state IN ('queued', 'running')
            LIMIT %(running)s::integer
        ) taken
    ) AS running,
-- include: count_ready
    AS waiting,
    (
        SELECT max(
            greatest(
                0, extract(epoch FROM clock_timestamp() - greatest(job.created_at, job.run_at))
            )
        )::float8
        FROM level
        CROSS JOIN LATERAL (
            SELECT j.created_at, j.run_at
            FROM tenantqueue_job_hot j
            WHERE j.state = 'ready' AND j.lane = level.lane AND j.queue_id = wanted.id
            ORDER BY j.lane, j.queue_id, j.priority, j.id
            LIMIT 1
        ) job
    ) AS wait_seconds
FROM (
    SELECT given.id, %(waiting)s::integer AS most
    FROM unnest(%(ids)s::integer[]) AS given (id)
) wanted
