-- Queues with ready jobs in one walk. First which cannot start any, and their jobs, up to `most` of
-- each reason: paused, slots (all are taken), rate (it is used up). Then what would start if there
-- were more workers, up to `startable`: see count_startable.sql. At last `listed` queues: see
-- list_busy_queues.sql. Order: lane by lane, and by queue inside a lane; after `visits` of these
-- steps no further one is looked at, and at most `active` active jobs are counted. Locks: none.
-- Indexes: tenantqueue_job_ready, tenantqueue_job_slots, the primary keys of the queues and of
-- their rates.
WITH RECURSIVE
-- include: ready_queues
, seen AS MATERIALIZED (
    SELECT
        visit.lane, visit.queue_id, first.waits, least(free.slots, free.starts) AS room,
        queue.executor,
        CASE
            WHEN queue.paused THEN 'paused'
            WHEN free.slots < 1 THEN 'slots'
            WHEN free.starts < 1 THEN 'rate'
        END AS reason
    FROM visit
    CROSS JOIN LATERAL (
        SELECT
            q.id, q.paused, q.num_slots, q.max_per_second, q.executor,
            statement_timestamp() AS as_of,
            coalesce(q.burst, greatest(1, ceil(q.max_per_second)))::float8 AS burst
        FROM tenantqueue_tenantqueue q
        WHERE q.id = visit.queue_id
        OFFSET 0
    ) queue
    CROSS JOIN LATERAL (
        SELECT
            queue.num_slots - count(*) AS slots,
-- include: starts_left
            AS starts
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE queue.num_slots IS NOT NULL AND NOT queue.paused
                AND j.queue_id = queue.id AND j.state IN ('queued', 'running')
            LIMIT queue.num_slots
        ) taken
        OFFSET 0
    ) free
    CROSS JOIN LATERAL (
        SELECT
            extract(epoch FROM statement_timestamp() - greatest(j.created_at, j.run_at)) AS waits
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = visit.lane AND j.queue_id = visit.queue_id
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT 1
    ) first
), blocked AS (
    SELECT
        (SELECT count(DISTINCT s.queue_id) FROM seen s WHERE s.reason = kind.reason) AS queues,
        (
            SELECT count(*)
            FROM (
                SELECT
                FROM seen s
                CROSS JOIN LATERAL (
                    SELECT
                    FROM tenantqueue_job_hot j
                    WHERE j.state = 'created' AND j.lane = s.lane AND j.queue_id = s.queue_id
                    LIMIT %(most)s::integer
                ) job
                WHERE s.reason = kind.reason
                LIMIT %(most)s::integer
            ) counted
        ) AS jobs
    FROM unnest(ARRAY['paused', 'slots', 'rate']) WITH ORDINALITY AS kind (reason, place)
    ORDER BY kind.place
), startable AS (
    SELECT s.queue_id, s.room, job.waits
    FROM seen s
    CROSS JOIN LATERAL (
        SELECT
-- include: seconds_ready
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = s.lane AND j.queue_id = s.queue_id
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT greatest(0, least(s.room, %(startable)s::integer))
    ) job
    WHERE s.reason IS NULL AND s.executor IS NULL
    LIMIT %(startable)s::integer
),
-- include: total_startable
, late AS (
    SELECT s.queue_id, max(s.waits) AS waits
    FROM seen s
    GROUP BY s.queue_id
),
-- include: listed_queues
SELECT
    ARRAY(SELECT b.queues FROM blocked b) AS queues, ARRAY(SELECT b.jobs FROM blocked b) AS jobs,
    total.jobs, total.waits, listed.*
FROM total
LEFT JOIN listed ON true
ORDER BY listed.waits DESC NULLS LAST, listed.active DESC, listed.id
