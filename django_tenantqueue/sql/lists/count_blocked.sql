-- Queues with ready jobs that cannot start, and these jobs, by what blocks them: the queue is
-- paused, its slots are taken, or its rate is used up. At most `most` jobs of each are counted.
-- Order: lane by lane, and by queue inside a lane; after `visits` of these steps no further one is
-- looked at. Locks: none.
-- Indexes: tenantqueue_job_ready, tenantqueue_job_slots, the primary keys of the queues and of
-- their rates.
WITH RECURSIVE
-- include: ready_queues
, blocked AS MATERIALIZED (
    SELECT visit.lane, visit.queue_id, judged.reason
    FROM visit
    CROSS JOIN LATERAL (
        SELECT
            q.id, q.paused, q.num_slots, q.max_per_second, statement_timestamp() AS as_of,
            coalesce(q.burst, greatest(1, ceil(q.max_per_second)))::float8 AS burst
        FROM tenantqueue_tenantqueue q
        WHERE q.id = visit.queue_id
        OFFSET 0
    ) queue
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN queue.paused THEN 'paused'
            WHEN queue.num_slots <= (
                SELECT count(*)
                FROM (
                    SELECT
                    FROM tenantqueue_job_hot j
                    WHERE queue.num_slots IS NOT NULL
                        AND j.queue_id = queue.id AND j.state IN ('queued', 'running')
                    LIMIT queue.num_slots
                ) taken
            ) THEN 'slots'
            WHEN queue.max_per_second IS NOT NULL AND queue.burst -
-- include: debt
                < 1 THEN 'rate'
        END AS reason
        OFFSET 0
    ) judged
    WHERE judged.reason IS NOT NULL
)
SELECT
    kind.reason,
    (SELECT count(DISTINCT b.queue_id) FROM blocked b WHERE b.reason = kind.reason) AS queues,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM blocked b
            CROSS JOIN LATERAL (
                SELECT
                FROM tenantqueue_job_hot j
                WHERE j.state = 'created' AND j.lane = b.lane AND j.queue_id = b.queue_id
                ORDER BY j.lane, j.queue_id, j.priority, j.id
                LIMIT %(most)s::integer
            ) job
            WHERE b.reason = kind.reason
            LIMIT %(most)s::integer
        ) counted
    ) AS jobs
FROM unnest(ARRAY['paused', 'slots', 'rate']) AS kind (reason)
