-- Ready jobs of some queues by task, and how long those of each task have waited at most. The first
-- `most` of a queue are read, lane by lane, in the order of the claim.
-- Index: tenantqueue_job_ready.
WITH RECURSIVE
-- include: ready_lanes
SELECT
    given.id, job.task, count(*)::integer AS jobs,
    max(
        greatest(0, extract(epoch FROM clock_timestamp() - greatest(job.created_at, job.run_at)))
    )::float8 AS wait_seconds
FROM unnest(%(ids)s::integer[]) AS given (id)
CROSS JOIN LATERAL (
    SELECT one.task, one.created_at, one.run_at
    FROM level
    CROSS JOIN LATERAL (
        SELECT j.task, j.created_at, j.run_at
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready' AND j.lane = level.lane AND j.queue_id = given.id
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT %(most)s::integer
    ) one
    LIMIT %(most)s::integer
) job
GROUP BY given.id, job.task
