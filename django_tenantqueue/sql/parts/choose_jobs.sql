-- The jobs to claim: read and locked in each place, ranked by lane, turn and place, and cut to the
-- room.
candidate AS MATERIALIZED (
    SELECT
        share.*, job.id, job.is_async,
        row_number() OVER (PARTITION BY share.place ORDER BY share.priority, job.id) AS nth,
        row_number() OVER (
            PARTITION BY share.queue_id ORDER BY share.lane, share.priority, job.id
        ) AS nth_of_queue
    FROM share
    LEFT JOIN LATERAL (
        -- how far to read past jobs of closed tasks; empty when no task is closed
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE (SELECT cardinality(closed.names) FROM closed) > 0
            AND j.state = 'ready' AND j.lane = share.lane AND j.queue_id = share.queue_id
            AND (j.priority, j.id) >= (share.priority, share.first_id)
            AND j.priority <= share.priority
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        OFFSET %(most_passed)s::integer
        LIMIT 1
    ) until ON true
    CROSS JOIN LATERAL (
        SELECT j.id, j.is_async
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready' AND j.lane = share.lane AND j.queue_id = share.queue_id
            -- rows, or the primary key might be walked
            AND (j.priority, j.id) >= (share.priority, share.first_id)
            AND (j.priority, j.id)
                <= (share.priority, coalesce(until.id, 9223372036854775807))
            AND j.task <> ALL ((SELECT closed.names FROM closed)::text[])
            AND j.id <> ALL (%(left_jobs)s::bigint[])
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT least(share.free, share.depth, %(room)s::integer)
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
), ranked AS (
    SELECT
        candidate.*,
        (candidate.used + candidate.nth - 1) / candidate.weight AS turn,
        row_number() OVER served AS nth_served,
        count(*) FILTER (WHERE NOT candidate.is_async) OVER served AS nth_threaded,
        count(*) FILTER (WHERE candidate.is_async) OVER served AS nth_async
    FROM candidate
    WHERE candidate.nth_of_queue <= candidate.free
        AND candidate.lane <= coalesce(
            (
                SELECT min(cut.lane)
                FROM candidate cut
                WHERE cut.nth >= cut.depth AND cut.nth < cut.free
            ),
            candidate.lane
        )
        AND NOT (
            candidate.lane IS NOT DISTINCT FROM candidate.cut_lane
            AND candidate.used + candidate.nth > candidate.weight
        )
    WINDOW served AS (
        ORDER BY
            candidate.lane, (candidate.used + candidate.nth - 1) / candidate.weight,
            candidate.place, candidate.nth
    )
), chosen AS MATERIALIZED (
    -- a job that finds no executor of its kind holds back the later ones of its queue
    SELECT fitting.*
    FROM (
        SELECT
            ranked.*,
            bool_and(
                CASE
                    WHEN ranked.is_async THEN ranked.nth_async <= %(room_async)s::integer
                    ELSE ranked.nth_threaded <= %(room_threads)s::integer
                END
            ) OVER (PARTITION BY ranked.queue_id ORDER BY ranked.nth_of_queue) AS fits
        FROM ranked
    ) fitting
    WHERE fitting.fits
    ORDER BY fitting.nth_served
    LIMIT %(room)s::integer
)
