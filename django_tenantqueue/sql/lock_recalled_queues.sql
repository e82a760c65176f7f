-- First half of a claim while the server cannot clean up: as lock_queues.sql, without the walk. See there
-- for the locks, the order and what is handed on. From `locked` on both are the same.
--
-- A walk would read all index entries of jobs that have gone since somebody's snapshot was taken. So the
-- worker says where to look (operations/recall.py): `floors`, of each lane, queue and priority the least id
-- at which anything may be ready. What has been put in since is found by its id, from `arrivals_from` on,
-- `most_arrivals` living rows at most. `recalled` tells where the first ready job of each place is, if
-- there is one.
-- Slots are counted from `taken_from` on: since when (`queued_at`, in microseconds) those may have been
-- queued that hold one. It is not believed when the clock stands before `taken_as_of`, at which it was
-- told: the clock was set back then.
-- Indexes: tenantqueue_job_ready for the places, primary key for what was put in since, for the queues
-- and for their rates, tenantqueue_job_slots for fullness.
WITH began AS MATERIALIZED (
    SELECT
        pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_ready'))
        + pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_slots')) AS entries
), recent AS MATERIALIZED (
    SELECT job.*
    FROM began
    CROSS JOIN LATERAL (
        -- not by state, or the planner might take another index, whose entries are to be avoided
        SELECT j.id, j.state, j.lane, j.queue_id, j.priority
        FROM tenantqueue_job_hot j
        WHERE j.id >= %(arrivals_from)s::bigint + 0 * coalesce(began.entries, 0)
        ORDER BY j.id
        LIMIT %(most_arrivals)s::integer
    ) job
), recalled AS MATERIALIZED (
    SELECT known.lane, known.queue_id, known.priority, job.id
    FROM (
        SELECT either.lane, either.queue_id, either.priority, min(either.id) AS id
        FROM (
            SELECT floor.lane, floor.queue_id, floor.priority, floor.id
            FROM unnest(
                %(floor_lanes)s::smallint[], %(floor_queues)s::integer[],
                %(floor_priorities)s::smallint[], %(floor_ids)s::bigint[]
            ) AS floor (lane, queue_id, priority, id)
            UNION ALL
            SELECT recent.lane, recent.queue_id, recent.priority, recent.id
            FROM recent
            WHERE recent.state = 'created'
        ) either
        GROUP BY either.lane, either.queue_id, either.priority
    ) known
    LEFT JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = known.lane AND j.queue_id = known.queue_id
            AND j.priority = known.priority AND j.id >= known.id
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT 1
    ) job ON true
), met AS MATERIALIZED (
    SELECT
        pair.lane, pair.queue_id, pair.start_id, pair.queue_id <= pair.start_id AS wrapped,
        true AS is_queue, 1 AS step
    FROM (
        SELECT DISTINCT
            recalled.lane::integer, recalled.queue_id,
            coalesce(known.start_id, %(first_start)s::integer) AS start_id
        FROM recalled
        LEFT JOIN unnest(%(lanes)s::smallint[], %(starts)s::integer[]) AS known (lane, start_id)
            ON known.lane = recalled.lane
        WHERE recalled.id IS NOT NULL
    ) pair
    ORDER BY pair.lane, pair.queue_id <= pair.start_id, pair.queue_id
), taken_from AS MATERIALIZED (
    SELECT since.queue_id, 'epoch'::timestamptz + since.microseconds * interval '1 microsecond' AS queued_at
    FROM unnest(%(taken_queues)s::integer[], %(taken_from)s::bigint[]) AS since (queue_id, microseconds)
    WHERE 'epoch'::timestamptz + %(taken_as_of)s::bigint * interval '1 microsecond' <= clock_timestamp()
), seen AS MATERIALIZED (
    SELECT
        row_number() OVER () AS nth, visit.*,
        CASE
            WHEN visit.queue_id = ANY (%(skip_queues)s::integer[]) THEN 'skipped'
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
    FROM met visit
    LEFT JOIN LATERAL (
        SELECT
            q.id, q.paused, q.num_slots, q.max_per_second,
            coalesce(q.burst, greatest(1, ceil(q.max_per_second)))::float8 AS burst
        FROM tenantqueue_tenantqueue q
        WHERE q.id = visit.queue_id
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
                THEN (
                    SELECT greatest(
                        0,
                        least(rate.debt, queue.burst) - queue.max_per_second * greatest(
                            0, extract(epoch FROM statement_timestamp() - rate.as_of)::float8
                        )
                    )
                    FROM tenantqueue_queuerate rate
                    WHERE rate.queue_id = queue.id
                        AND rate.as_of <= statement_timestamp() + interval '1 second'
                )
            END AS debt
        FROM (
            SELECT
            FROM (
                SELECT coalesce(max(since.queued_at), '-infinity') AS queued_at
                FROM taken_from since
                WHERE since.queue_id = visit.queue_id
            ) since
            CROSS JOIN LATERAL (
                -- by itself, lest all entries of the queue be read, and only then compared
                SELECT
                FROM tenantqueue_job_hot j
                WHERE j.queue_id = visit.queue_id AND j.state IN ('queued', 'running')
                    AND j.queued_at >= since.queued_at
                OFFSET 0
            ) slot
            WHERE queue.num_slots IS NOT NULL
            LIMIT queue.num_slots
        ) one
        WHERE NOT queue.paused AND NOT visit.queue_id = ANY (%(skip_queues)s::integer[])
        OFFSET 0
    ) taken ON true
), locked AS MATERIALIZED (
    SELECT seen.nth, seen.lane, seen.queue_id, seen.is_unlimited
    FROM seen
    CROSS JOIN LATERAL (
        SELECT
        FROM (
            SELECT
            FROM tenantqueue_tenantqueue q
            WHERE q.id = seen.queue_id AND NOT seen.is_unlimited
            FOR NO KEY UPDATE SKIP LOCKED
        ) row_lock
        UNION ALL
        SELECT
        WHERE seen.is_unlimited
            AND pg_try_advisory_xact_lock_shared(%(lock_class)s::integer, seen.queue_id)
    ) queue
    WHERE seen.status = 'open'
    LIMIT %(most_locks)s::integer
), bound AS MATERIALIZED (
    SELECT count(*) AS locks, max(nth) AS last
    FROM locked
), told AS MATERIALIZED (
    SELECT seen.*, EXISTS (SELECT FROM locked WHERE locked.nth = seen.nth) AS held
    FROM seen
    LIMIT (SELECT CASE WHEN locks >= %(most_locks)s::integer THEN last END FROM bound)
), handed AS MATERIALIZED (
    SELECT
        set_config('tenantqueue.lanes', coalesce(array_agg(lane ORDER BY nth)::text, '{}'), true),
        set_config(
            'tenantqueue.queues', coalesce(array_agg(queue_id ORDER BY nth)::text, '{}'), true
        ),
        set_config(
            'tenantqueue.unlimited',
            coalesce((array_agg(DISTINCT queue_id) FILTER (WHERE is_unlimited))::text, '{}'), true
        ),
        set_config(
            'tenantqueue.floors',
            coalesce(
                (
                    SELECT jsonb_agg(to_jsonb(recalled))
                    FROM recalled
                    WHERE recalled.id IS NOT NULL
                )::text,
                '[]'
            ),
            true
        )
    FROM (
        -- a queue that was contended in a better lane is not served in a later one
        SELECT
            told.nth, told.lane, told.queue_id, told.held, told.is_unlimited,
            bool_or(NOT told.held) OVER (PARTITION BY told.queue_id ORDER BY told.nth) AS missed
        FROM told
        WHERE told.status = 'open'
    ) open
    WHERE open.held AND NOT open.missed
)
SELECT
    (SELECT bound.locks FROM bound CROSS JOIN handed) AS locks,
    count(*) FILTER (WHERE status = 'open' AND NOT held) AS contended,
    array_agg(queue_id) FILTER (WHERE status = 'blocked') AS blocked,
    array_agg(queue_id) FILTER (WHERE status = 'spent') AS spent,
    array_agg(spent_seconds) FILTER (WHERE status = 'spent') AS spent_seconds,
    array_agg(queue_id) FILTER (WHERE status = 'foreign') AS foreign_queues,
    count(*) FILTER (WHERE status = 'skipped') AS skipped,
    coalesce(max(step), 0) AS steps,
    array_agg(queue_id) FILTER (WHERE held) AS held_queues,
    array_agg(lane) FILTER (WHERE held) AS held_lanes,
    EXISTS (
        SELECT
        FROM tenantqueue_taskcontrol c
        WHERE c.paused OR c.num_slots IS NOT NULL
    ) AS has_controls,
    array_agg(DISTINCT lane) FILTER (WHERE is_queue) AS lanes,
    min(lane) FILTER (WHERE status = 'open') AS open_lane,
    (array_agg(lane ORDER BY nth DESC))[1] AS lane,
    (array_agg(queue_id ORDER BY nth DESC))[1] AS queue_id,
    (array_agg(start_id ORDER BY nth DESC))[1] AS start_id,
    (array_agg(wrapped ORDER BY nth DESC))[1] AS wrapped,
    pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_ready'))
        + pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_slots'))
        - (SELECT began.entries FROM began) AS walked,
    (SELECT array_agg(ARRAY[lane, queue_id, priority, id]) FROM recalled) AS recalled,
    coalesce(pg_sequence_last_value('tenantqueue_job_id_seq'::regclass), 0) AS last_id,
    (SELECT max(recent.id) FROM recent) AS last_arrival,
    (SELECT count(*) FROM recent) >= %(most_arrivals)s::integer AS arrivals_cut
FROM told
