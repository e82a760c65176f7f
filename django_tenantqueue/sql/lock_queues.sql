-- First half of a claim: walk over the queues that have ready jobs, in the order in which they
-- are served, and lock up to `most_locks` of them that are neither paused nor full, nor have used up
-- what their rate allows.
--
-- Order: lanes ascending; inside a lane the queues after the one served last (`starts`; in a lane
-- that is new to this worker, `first_start`), then from the beginning. Each step is one probe of tenantqueue_job_ready, however many jobs wait.
-- Locks: tenantqueue_tenantqueue rows, NO KEY UPDATE, SKIP LOCKED: it never waits. A queue without any
-- limit (no slots, no rate) is not locked. Claims of it share an advisory lock until their commit, for
-- which an edit that limits or pauses the queue waits (tenantqueue_queue_limited, a trigger).
-- Indexes: tenantqueue_job_ready for the walk, tenantqueue_job_slots for fullness, primary key for
-- the queues and their rates.
-- Fullness and rate are looked at here only to leave such queues unlocked; what counts is the count in
-- claim_jobs.sql, which has a later snapshot. For a queue that is `spent`, `spent_seconds` says when to
-- look again: at its next start, or when what `batch_seconds` bring can be taken at once. The locked
-- pairs are handed to it through transaction-local settings, so that both statements travel in one
-- round trip.
-- Lazy on purpose: the walk stops as soon as enough is locked, or after `most_visits` steps.
-- `walked` counts the index entries that were read. It is far more than the steps when somebody's old
-- snapshot keeps the server from removing the entries of jobs that have gone: each of them costs a look
-- into the table. The worker then takes lock_recalled_queues.sql; see operations/recall.py.
WITH RECURSIVE began AS MATERIALIZED (
    SELECT
        pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_ready'))
        + pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_slots')) AS entries
), visit AS (
    SELECT
        %(from_lane)s::integer AS lane,
        %(from_queue)s::integer AS queue_id,
        %(from_start)s::integer AS start_id,
        %(from_wrapped)s::boolean AS wrapped,
        false AS is_queue,
        0 AS step
    FROM began
    UNION ALL
    SELECT next.*, visit.step + 1
    FROM visit
    CROSS JOIN LATERAL (
        (
            -- the next queue of this lane
            SELECT j.lane::integer, j.queue_id, visit.start_id, visit.wrapped, true
            FROM tenantqueue_job_hot j
            WHERE j.state = 'created' AND j.lane = visit.lane AND j.queue_id > visit.queue_id
                -- a bound of the index: an OR would be a filter, read past to the end of the lane
                AND j.queue_id <= CASE WHEN visit.wrapped THEN visit.start_id ELSE 2147483647 END
            ORDER BY j.lane, j.queue_id
            LIMIT 1
        )
        UNION ALL
        (
            -- once round: from the lane's first queue up to where it began
            SELECT j.lane::integer, j.queue_id, visit.start_id, true, true
            FROM tenantqueue_job_hot j
            WHERE j.state = 'created' AND j.lane = visit.lane AND j.queue_id <= visit.start_id
                AND NOT visit.wrapped
            ORDER BY j.lane, j.queue_id
            LIMIT 1
        )
        UNION ALL
        (
            -- the next lane, from its own cursor; one that is to be skipped is passed at its end, for
            -- as a condition on the index it would be walked over entry by entry
            SELECT
                ahead.lane::integer,
                CASE WHEN ahead.skip THEN 2147483647 ELSE coalesce(known.start_id, %(first_start)s::integer) END,
                CASE WHEN ahead.skip THEN 2147483647 ELSE coalesce(known.start_id, %(first_start)s::integer) END,
                ahead.skip,
                false
            FROM (
                SELECT j.lane, j.lane = ANY (%(skip_lanes)s::smallint[]) AS skip
                FROM tenantqueue_job_hot j
                WHERE j.state = 'created' AND j.lane > visit.lane
                ORDER BY j.lane
                LIMIT 1
            ) ahead
            LEFT JOIN unnest(%(lanes)s::smallint[], %(starts)s::integer[]) AS known (lane, start_id)
                ON known.lane = ahead.lane
        )
        LIMIT 1
    ) AS next (lane, queue_id, start_id, wrapped, is_queue)
    WHERE visit.step < %(most_visits)s::integer
), seen AS MATERIALIZED (
    SELECT
        row_number() OVER () AS nth, visit.*,
        CASE
            WHEN NOT visit.is_queue THEN 'lane'
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
    FROM visit
    LEFT JOIN LATERAL (
        SELECT
            q.id, q.paused, q.num_slots, q.max_per_second,
            coalesce(q.burst, greatest(1, ceil(q.max_per_second)))::float8 AS burst
        FROM tenantqueue_tenantqueue q
        WHERE visit.is_queue AND q.id = visit.queue_id
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
            FROM tenantqueue_job_hot j
            WHERE queue.num_slots IS NOT NULL
                AND j.queue_id = visit.queue_id AND j.state IN ('queued', 'running')
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
        - (SELECT began.entries FROM began) AS walked
FROM told
