-- Running and waiting jobs of some queues, each count bounded by `most` (a result of `most` means
-- "that many or more"). Indexes: tenantqueue_job_slots, and tenantqueue_job_ready lane by lane.
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
            LIMIT %(most)s
        ) taken
    ) AS running,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM level
            CROSS JOIN LATERAL (
                SELECT
                FROM tenantqueue_job_hot j
                WHERE j.state = 'created' AND j.lane = level.lane AND j.queue_id = wanted.id
                LIMIT %(most)s
            ) job
            LIMIT %(most)s
        ) ready
    ) AS waiting
FROM unnest(%(ids)s::integer[]) AS wanted (id)
