-- How many ready jobs of a queue come before one of them, counted up to `most`: those of lower
-- lanes, and those of its own lane with a lower (priority, id).
-- Locks: none. Index: tenantqueue_job_ready, lane by lane.
WITH RECURSIVE
-- include: ready_lanes
SELECT count(*)
FROM (
    SELECT
    FROM level
    CROSS JOIN LATERAL (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = level.lane AND j.queue_id = %(queue_id)s::integer
            AND (
                level.lane < %(lane)s::smallint
                OR (j.priority, j.id) < (%(priority)s::smallint, %(id)s::bigint)
            )
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT %(most)s::integer
    ) job
    WHERE level.lane <= %(lane)s::smallint
    LIMIT %(most)s::integer
) before
