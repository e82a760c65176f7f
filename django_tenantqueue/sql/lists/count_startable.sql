-- Ready jobs that would start at once if there were more workers: of each queue that is not paused,
-- as many as it has free slots (and starts left of its rate), at most `most` of all; and for how
-- many seconds the first of them has been waiting. What has passed a gate does not count for that:
-- when it did is not known.
-- Order: lane by lane, and by queue inside a lane; after `visits` of these steps no further one is
-- looked at. Locks: none.
-- Indexes: tenantqueue_job_ready, tenantqueue_job_slots, the primary keys of the queues and of
-- their rates.
WITH RECURSIVE
-- include: ready_queues
, startable AS (
    SELECT visit.queue_id, room.jobs AS room, job.waits
    FROM visit
    CROSS JOIN LATERAL (
        SELECT
            q.id, q.num_slots, q.max_per_second, statement_timestamp() AS as_of,
            coalesce(q.burst, greatest(1, ceil(q.max_per_second)))::float8 AS burst
        FROM tenantqueue_tenantqueue q
        WHERE q.id = visit.queue_id AND NOT q.paused AND q.executor IS NULL
        OFFSET 0
    ) queue
    CROSS JOIN LATERAL (
        SELECT least(
            coalesce(queue.num_slots, %(most)s::integer) - count(*),
-- include: starts_left
        ) AS jobs
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE queue.num_slots IS NOT NULL
                AND j.queue_id = visit.queue_id AND j.state IN ('queued', 'running')
            LIMIT queue.num_slots
        ) taken
        OFFSET 0
    ) room
    CROSS JOIN LATERAL (
        SELECT
-- include: seconds_ready
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = visit.lane AND j.queue_id = visit.queue_id
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT greatest(0, room.jobs)
    ) job
    LIMIT %(most)s::integer
),
-- include: total_startable
SELECT total.jobs, total.waits AS oldest_wait_seconds
FROM total
