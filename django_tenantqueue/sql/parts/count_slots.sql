-- The locked places, the free slots of their queues, and the debts of their rates.
place AS MATERIALIZED (
    SELECT
        handed.*,
        min(handed.nth) OVER (PARTITION BY handed.lane, handed.queue_id) AS place,
        -- there may be more queues in the last lane
        CASE
            WHEN count(*) OVER () >= %(most_locks)s::integer THEN max(handed.lane) OVER ()
        END AS cut_lane
    FROM unnest(
        current_setting('tenantqueue.lanes')::smallint[],
        current_setting('tenantqueue.queues')::integer[],
        current_setting('tenantqueue.priorities')::smallint[],
        current_setting('tenantqueue.ids')::bigint[]
    ) WITH ORDINALITY AS handed (lane, queue_id, priority, first_id, nth)
), slot AS MATERIALIZED (
    SELECT
        queue.id, queue.weight,
        CASE
            WHEN NOT queue.is_shared OR queue.num_slots IS NULL AND queue.max_per_second IS NULL
            THEN coalesce(queue.num_slots - queue.taken, 1000000)
            ELSE 0
        END AS free,
        queue.burst, queue.as_of,
        CASE
            WHEN queue.as_of IS NOT NULL
            THEN
-- include: rate_debt
        END AS debt
    FROM (
        SELECT
            known.queue_id,
            (
                SELECT since.taken_at FROM since WHERE since.queue_id = known.queue_id
            ) AS taken_since
        FROM (SELECT DISTINCT place.queue_id FROM place) known
        OFFSET 0
    ) met
    CROSS JOIN LATERAL (
        SELECT
            q.id, q.weight, q.num_slots, q.max_per_second,
            coalesce(q.burst, greatest(1, ceil(q.max_per_second)))::float8 AS burst,
            CASE WHEN q.max_per_second IS NOT NULL THEN clock_timestamp() END AS as_of,
            CASE
                WHEN q.num_slots IS NOT NULL
                THEN (
                    SELECT count(*)
                    FROM tenantqueue_job_hot j
                    WHERE j.queue_id = met.queue_id AND j.state IN ('queued', 'running')
                        AND j.queued_at >= coalesce(met.taken_since, '-infinity')
                )
            END AS taken,
            q.id = ANY (current_setting('tenantqueue.unlimited')::integer[]) AS is_shared
        FROM tenantqueue_tenantqueue q
        WHERE q.id = met.queue_id AND NOT q.paused
        OFFSET 0
    ) queue
    WHERE coalesce(queue.num_slots > queue.taken, true)
)
