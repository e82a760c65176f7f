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
,
-- include: count_slots
, closed AS MATERIALIZED (
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
),
-- include: choose_jobs
, spent AS (
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
                        coalesce(q.burst, greatest(1, ceil(q.max_per_second))),
                        q.max_per_second * extract(epoch FROM excluded.as_of - rate.as_of)::float8
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
    chosen.nth_served, chosen.turn, chosen.used + chosen.nth AS used, chosen.weight,
    chosen.free - chosen.nth_of_queue AS slots_left, job.gates, job.is_controlled,
    job.waited
FROM claimed job
JOIN chosen ON chosen.id = job.id
