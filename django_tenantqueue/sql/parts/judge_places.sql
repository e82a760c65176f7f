-- The first ready job of each place, and whether its queue may serve it.
seen AS MATERIALIZED (
    SELECT
        row_number() OVER () AS nth, ready.lane, ready.queue_id, ready.priority, ready.first_id,
        CASE
            WHEN ready.first_id IS NULL THEN 'empty'
            WHEN queue.id IS NULL THEN 'foreign'
            WHEN queue.paused THEN 'blocked'
            WHEN taken.slots >= queue.num_slots THEN 'blocked'
            WHEN queue.burst - taken.debt < 1 THEN 'spent'
            ELSE 'open'
        END AS status,
        queue.num_slots IS NULL AND queue.max_per_second IS NULL AS is_unlimited,
        (
            greatest(1, least(queue.burst / 2, queue.max_per_second * %(batch_seconds)s::float8))
            - queue.burst + taken.debt
        ) / queue.max_per_second AS spent_seconds
    FROM (
        SELECT
            place.lane, place.queue_id, place.priority,
            coalesce(
                place.first_id,
                (
                    SELECT j.id
                    FROM tenantqueue_job_hot j
                    WHERE j.state = 'ready' AND j.lane = place.lane
                        AND j.queue_id = place.queue_id
                        -- a row, or the primary key might be walked
                        AND (j.priority, j.id) >= (place.priority, place.least_id)
                        AND j.priority <= place.priority
                    ORDER BY j.lane, j.queue_id, j.priority, j.id
                    LIMIT 1
                )
            ) AS first_id
        FROM place
        OFFSET 0
    ) ready
    LEFT JOIN LATERAL (
        SELECT
            q.id, q.paused, q.num_slots, q.max_per_second,
            coalesce(q.burst, greatest(1, ceil(q.max_per_second)))::float8 AS burst,
            statement_timestamp() AS as_of,
            (SELECT since.taken_at FROM since WHERE since.queue_id = q.id) AS taken_since
        FROM tenantqueue_tenantqueue q
        WHERE q.id = ready.queue_id AND ready.first_id IS NOT NULL
            AND q.executor IS NOT DISTINCT FROM %(executor)s::text
            AND (%(queues)s::text[] IS NULL OR q.name = ANY (%(queues)s::text[]))
            AND (%(exclude_queues)s::text[] IS NULL OR q.name <> ALL (%(exclude_queues)s::text[]))
            AND (%(tenants)s::text[] IS NULL OR q.tenant = ANY (%(tenants)s::text[]))
        OFFSET 0
    ) queue ON true
    LEFT JOIN LATERAL (
        SELECT
            count(*) AS slots,
            CASE
                WHEN queue.max_per_second IS NOT NULL
                THEN
-- include: rate_debt
            END AS debt
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE queue.num_slots IS NOT NULL
                AND j.queue_id = ready.queue_id AND j.state IN ('queued', 'running')
                AND j.queued_at >= coalesce(queue.taken_since, '-infinity')
            LIMIT queue.num_slots
        ) one
        WHERE NOT queue.paused
        OFFSET 0
    ) taken ON true
)
