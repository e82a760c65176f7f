-- How many ready jobs of a queue come before one of them, counted up to `most`: those of lower
-- lanes, and those of its own lane with a lower (priority, id).
-- Locks: none. Index: tenantqueue_job_ready, lane by lane.
WITH RECURSIVE
-- include: ready_lanes
SELECT count(*)
FROM (
    SELECT
    FROM tenantqueue_job_hot j
    WHERE j.state = 'ready' AND j.queue_id = %(queue_id)s::integer
        AND j.lane = ANY (ARRAY(SELECT level.lane FROM level))
        AND (j.lane, j.queue_id, j.priority, j.id)
            < (%(lane)s::smallint, %(queue_id)s::integer, %(priority)s::smallint, %(id)s::bigint)
    LIMIT %(most)s::integer
) before
