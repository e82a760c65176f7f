-- Running and waiting jobs of some queues, each count bounded by `most` (a result of `most` means
-- "that many or more"), and how long the first ready job of a lane has waited, at most.
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
            LIMIT wanted.most
        ) taken
    ) AS running,
-- include: count_ready
    AS waiting,
-- include: longest_wait
    AS wait_seconds
FROM (
    SELECT given.id, %(most)s::integer AS most
    FROM unnest(%(ids)s::integer[]) AS given (id)
) wanted
