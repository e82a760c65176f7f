-- Second half of a claim: count the free slots of the queues that lock_queues.sql locked, take at
-- most `room` jobs, and store what they used of the rate. It must be a later statement of
-- the same READ COMMITTED transaction: its snapshot then shows every slot that was taken before the
-- lock was granted. Order: lane, turn, place in the round.
-- Locks: job rows, NO KEY UPDATE, SKIP LOCKED.
-- Indexes: tenantqueue_job_slots for the count, tenantqueue_job_ready for the jobs, primary keys of
-- jobs, queues and rates.
-- Reasoning: docs/explanation/claim.md.
WITH
-- include: taken_since
, place AS MATERIALIZED (
    -- the locked ones
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
    -- the free slots of their queues, and the debts of their rates
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
-- include: burst
            AS burst,
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
), closed AS MATERIALIZED (
    SELECT coalesce(array_agg(c.task::text), '{}') || %(left_tasks)s::text[] AS names
    FROM tenantqueue_closedtask c
), share AS MATERIALIZED (
    SELECT
        place.lane, place.queue_id, place.priority, place.place, place.cut_lane,
        slot.weight, slot.debt, slot.as_of,
        CASE
            WHEN start.priority > place.priority THEN 9223372036854775807
            WHEN start.priority = place.priority THEN greatest(start.id, place.first_id)
            ELSE place.first_id
        END AS first_id,
        -- no debt, no rate: then it is NULL, which least() passes over
        least(slot.free, floor(slot.burst - slot.debt)::integer) AS free,
        CASE
            WHEN place.queue_id = %(last_queue)s::integer AND place.lane = %(last_lane)s::integer
            THEN %(last_used)s::integer
            ELSE 0
        END AS used,
        slot.weight + ceil(
            %(room)s::integer::float8 * slot.weight / sum(
                CASE WHEN place.nth = place.place THEN slot.weight ELSE 0 END
            ) OVER (PARTITION BY place.lane)
        ) AS depth
    FROM place
    JOIN slot ON slot.id = place.queue_id
    LEFT JOIN unnest(
        %(start_lanes)s::smallint[], %(start_queues)s::integer[], %(start_priorities)s::smallint[],
        %(start_ids)s::bigint[]
    ) AS start (lane, queue_id, priority, id)
        ON start.lane = place.lane AND start.queue_id = place.queue_id
), candidate AS MATERIALIZED (
    -- read and locked in each place
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
), spent AS (
    INSERT INTO tenantqueue_queuerate AS rate (queue_id, debt, as_of)
    SELECT chosen.queue_id, min(chosen.debt) + count(*), min(chosen.as_of)
    FROM chosen
    WHERE chosen.as_of IS NOT NULL
    GROUP BY chosen.queue_id
    ON CONFLICT (queue_id) DO UPDATE
    SET as_of = excluded.as_of,
        -- with what a lowered burst left uncounted, less what time has made up for since
        debt = excluded.debt + coalesce(
            (
                SELECT greatest(
                    0,
                    rate.debt - greatest(
                        q.max_per_second * extract(epoch FROM excluded.as_of - rate.as_of)::float8,
-- include: burst
                    )
                )
                FROM tenantqueue_tenantqueue q
                WHERE q.id = excluded.queue_id
                    AND rate.as_of <= excluded.as_of + interval '1 second'
            ),
            0
        )
), taken AS MATERIALIZED (
    SELECT
        array_agg(chosen.id ORDER BY chosen.nth_served) AS ids, clock_timestamp() AS at,
        count(chosen.as_of) > 0 AS has_rates
    FROM chosen
), claimed AS (
    -- by an array: a join may be planned as one probe of all for each
    UPDATE tenantqueue_job_hot AS job
    SET state = 'queued',
        -- in the order in which they are served
        queued_at = coalesce(
            CASE
                WHEN (SELECT taken.has_rates FROM taken)
                THEN (SELECT slot.as_of FROM slot WHERE slot.id = job.queue_id)
            END,
            (SELECT taken.at FROM taken) + interval '1 microsecond' * (
                array_position((SELECT taken.ids FROM taken), job.id)
                - cardinality((SELECT taken.ids FROM taken))
            )
        ),
        started_at = NULL,
        worker_id = %(worker)s::bigint,
        claim_seq = job.claim_seq + 1,
        attempt = job.attempt + 1,
        task_at = NULL
    WHERE job.id = ANY ((SELECT taken.ids FROM taken)::bigint[])
    RETURNING
-- include: claimed_columns
-- include: gates_of_job
        EXISTS (
            SELECT
            FROM tenantqueue_taskcontrol c
            WHERE c.task = job.task
                AND (c.paused OR c.num_slots IS NOT NULL OR c.max_per_second IS NOT NULL)
        ) AS is_controlled,
        date_part('epoch', job.queued_at - greatest(job.run_at, job.created_at)) AS waited
)
SELECT
-- include: claimed_columns
    chosen.nth_served, chosen.used + chosen.nth AS used, chosen.weight,
    chosen.free - chosen.nth_of_queue AS slots_left, job.gates, job.is_controlled,
    job.waited
FROM claimed job
JOIN chosen ON chosen.id = job.id
