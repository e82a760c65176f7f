-- Second half of a claim while the server cannot clean up: as claim_jobs.sql, see there for all that is
-- not said here. Jobs are looked for where lock_recalled_queues.sql found the first one of each lane, queue
-- and priority, and slots are counted from `taken_from` on, see there. It has looked at all lanes from the
-- first on, so there is nothing to recheck. From `ranked` on both are the same.
-- Locks: job rows, NO KEY UPDATE, SKIP LOCKED.
-- Indexes: tenantqueue_job_slots for the count, tenantqueue_job_ready for the jobs, the primary key
-- for the update, and for the rates.
WITH handed AS MATERIALIZED (
    SELECT h.lane, h.queue_id, h.place
    FROM unnest(
        current_setting('tenantqueue.lanes')::integer[],
        current_setting('tenantqueue.queues')::integer[]
    ) WITH ORDINALITY AS h (lane, queue_id, place)
), walk AS MATERIALIZED (
    SELECT max(handed.lane) AS last_lane, count(*) >= %(most_locks)s::integer AS is_cut
    FROM handed
), pair AS MATERIALIZED (
    SELECT handed.*
    FROM handed
), floor AS MATERIALIZED (
    SELECT f.lane, f.queue_id, f.priority, f.id
    FROM jsonb_to_recordset(current_setting('tenantqueue.floors')::jsonb)
        AS f (lane smallint, queue_id integer, priority smallint, id bigint)
), taken_from AS MATERIALIZED (
    SELECT since.queue_id, 'epoch'::timestamptz + since.microseconds * interval '1 microsecond' AS queued_at
    FROM unnest(%(taken_queues)s::integer[], %(taken_from)s::bigint[]) AS since (queue_id, microseconds)
    WHERE 'epoch'::timestamptz + %(taken_as_of)s::bigint * interval '1 microsecond' <= clock_timestamp()
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
            THEN coalesce(
                (
                    SELECT greatest(
                        0,
                        least(rate.debt, queue.burst) - queue.max_per_second * greatest(
                            0, extract(epoch FROM queue.as_of - rate.as_of)::float8
                        )
                    )
                    FROM tenantqueue_queuerate rate
                    WHERE rate.queue_id = queue.id
                        AND rate.as_of <= queue.as_of + interval '1 second'
                ),
                0
            )
        END AS debt
    FROM (SELECT DISTINCT queue_id FROM pair) met
    CROSS JOIN LATERAL (
        SELECT q.id, q.weight, q.num_slots, q.max_per_second,
        coalesce(q.burst, greatest(1, ceil(q.max_per_second)))::float8 AS burst,
        CASE WHEN q.max_per_second IS NOT NULL THEN clock_timestamp() END AS as_of,
        CASE
            WHEN q.num_slots IS NOT NULL
            THEN (
                SELECT count(*)
                FROM (
                    SELECT coalesce(max(since.queued_at), '-infinity') AS queued_at
                    FROM taken_from since
                    WHERE since.queue_id = met.queue_id
                ) since
                CROSS JOIN LATERAL (
                    SELECT
                    FROM tenantqueue_job_hot j
                    WHERE j.queue_id = met.queue_id AND j.state IN ('queued', 'running')
                        AND j.queued_at >= since.queued_at
                    OFFSET 0
                ) slot
            )
        END AS taken,
        q.id = ANY (current_setting('tenantqueue.unlimited')::integer[]) AS is_shared
        FROM tenantqueue_tenantqueue q
        WHERE q.id = met.queue_id AND NOT q.paused
        OFFSET 0
    ) queue
    WHERE coalesce(queue.num_slots > queue.taken, true)
), closed AS MATERIALIZED (
    SELECT coalesce(array_agg(c.name::text), '{}') AS names
    FROM tenantqueue_closedtask c
), share AS MATERIALIZED (
    SELECT
        pair.lane, pair.queue_id, pair.place, slot.weight, slot.debt, slot.as_of,
        coalesce(start.priority, -32768) AS start_priority, coalesce(start.id, 0) AS start_id,
        -- no debt, no rate: then it is NULL, which least() passes over
        least(slot.free, floor(slot.burst - slot.debt)::integer) AS free,
        CASE
            WHEN pair.queue_id = %(last_queue)s::integer AND pair.lane = %(last_lane)s::integer THEN %(last_used)s::integer
            ELSE 0
        END AS used,
        ceil(%(room)s::integer::float8 * slot.weight / sum(slot.weight) OVER (PARTITION BY pair.lane))
            + slot.weight AS depth
    FROM pair
    JOIN slot ON slot.id = pair.queue_id
    LEFT JOIN unnest(
        %(start_lanes)s::smallint[], %(start_queues)s::integer[], %(start_priorities)s::smallint[],
        %(start_ids)s::bigint[]
    ) AS start (lane, queue_id, priority, id)
        ON start.lane = pair.lane AND start.queue_id = pair.queue_id
), candidate AS MATERIALIZED (
    SELECT
        share.*, job.id, job.is_async,
        row_number() OVER (PARTITION BY share.place ORDER BY job.priority, job.id) AS nth,
        row_number() OVER (
            PARTITION BY share.queue_id ORDER BY share.lane, job.priority, job.id
        ) AS nth_of_queue
    FROM share
    CROSS JOIN LATERAL (
        SELECT found.id, found.priority, found.is_async
        FROM (
            -- a floor has one priority: the least id of those that are not passed over
            SELECT
                floor.priority,
                CASE
                    WHEN floor.priority > share.start_priority THEN floor.id
                    WHEN floor.priority = share.start_priority THEN greatest(floor.id, share.start_id)
                END AS id
            FROM floor
            WHERE floor.lane = share.lane AND floor.queue_id = share.queue_id
            ORDER BY floor.priority
        ) floor
        LEFT JOIN LATERAL (
            SELECT j.id
            FROM tenantqueue_job_hot j
            WHERE (SELECT cardinality(closed.names) FROM closed) > 0
                AND j.state = 'created' AND j.lane = share.lane AND j.queue_id = share.queue_id
                AND j.priority = floor.priority AND j.id >= floor.id
            ORDER BY j.lane, j.queue_id, j.priority, j.id
            OFFSET %(most_passed)s::integer
            LIMIT 1
        ) until ON true
        CROSS JOIN LATERAL (
            SELECT j.id, j.priority, j.is_async
            FROM tenantqueue_job_hot j
            WHERE j.state = 'created' AND j.lane = share.lane AND j.queue_id = share.queue_id
                AND j.priority = floor.priority AND j.id >= floor.id
                AND j.id <= coalesce(until.id, 9223372036854775807)
                AND j.name <> ALL ((SELECT closed.names FROM closed)::text[])
            ORDER BY j.lane, j.queue_id, j.priority, j.id
            LIMIT least(share.free, share.depth, %(room)s::integer)
            FOR NO KEY UPDATE SKIP LOCKED
        ) found
        LIMIT least(share.free, share.depth, %(room)s::integer)
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
            (SELECT is_cut FROM walk)
            AND candidate.lane = (SELECT last_lane FROM walk)
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
)
UPDATE tenantqueue_job_hot AS job
SET state = 'queued',
    queued_at = coalesce(chosen.as_of, clock_timestamp()),
    started_at = NULL,
    worker_id = %(worker)s::bigint,
    claim_seq = job.claim_seq + 1,
    attempt = job.attempt + 1,
    task_at = NULL
FROM chosen
WHERE job.id = chosen.id
    -- not redundant: it keeps a plan made while the table was empty from walking all of it
    AND job.id = ANY (ARRAY(SELECT c.id FROM chosen c))
RETURNING
    job.id, job.claim_seq, job.queue_id, job.lane, job.is_async, job.attempt, job.max_attempts,
    job.name, job.source_type, job.source_id, job.source_method, job.args::text,
    job.timeout_seconds, job.hard_timeout_seconds, job.expires_at, job.context::text,
    chosen.nth_served, chosen.turn, chosen.used + chosen.nth AS used, chosen.weight,
    chosen.free - chosen.nth_of_queue AS slots_left,
    CASE
        WHEN coalesce(
            job.session_key, job.user_key, job.exclusive_key, job.unique_key, job.monitor_id::text
        ) IS NOT NULL
        THEN jsonb_build_array(
            job.monitor_id::text, job.session_key, job.user_key, job.exclusive_key, job.session_halt,
            job.unique_key
        )::text
    END AS gates,
    EXISTS (
        SELECT
        FROM tenantqueue_taskcontrol c
        WHERE c.name = job.name AND (c.paused OR c.num_slots IS NOT NULL)
    ) AS is_controlled
