-- First half of a claim: find places with ready jobs and lock up to `most_locks` of their queues.
-- A place is a lane, queue and priority. Sources: places the worker knows, the latest job ids, and
-- `most_steps` steps through the index from a cursor. Order: lane, turn, queue, priority.
-- Locks: tenantqueue_tenantqueue rows, NO KEY UPDATE, SKIP LOCKED; for a queue without a limit a
-- shared advisory lock. It never waits. The locked places travel in transaction-local settings.
-- Indexes: tenantqueue_job_ready for places, the job's primary key for arrivals,
-- tenantqueue_job_slots for fullness, primary keys of queues and rates.
-- Reasoning: docs/explanation/claim.md.
WITH RECURSIVE
-- include: walk_ready
, arrival AS MATERIALIZED (
    -- the latest jobs, whose places are returned to the worker
    -- without a condition on the state, which might make the planner choose another index
    SELECT j.id, j.state, j.lane, j.queue_id, j.priority
    FROM tenantqueue_job_hot j
    WHERE j.id > (
        SELECT greatest(%(arrivals_after)s::bigint, began.last_id - %(most_arrivals)s::integer)
        FROM began
    )
    ORDER BY j.id
    LIMIT %(most_arrivals)s::integer
), place AS MATERIALIZED (
    -- the known ones, and those of the steps if these see all places there are
    SELECT
        found.lane, found.queue_id, found.priority, min(found.least_id) AS least_id,
        max(found.first_id) AS first_id
    FROM (
        SELECT known.lane, known.queue_id, known.priority, known.least_id, NULL::bigint AS first_id
        FROM unnest(
            %(known_lanes)s::smallint[], %(known_queues)s::integer[],
            %(known_priorities)s::smallint[], %(known_ids)s::bigint[]
        ) AS known (lane, queue_id, priority, least_id)
        UNION ALL
        -- if the steps do not see all places, these are served by later claims, in their order
        SELECT step.lane, step.queue_id, step.priority, step.id, step.id
        FROM step
        WHERE step.nth > 0 AND %(is_first)s::boolean
            AND (SELECT count(*) FROM step) <= %(most_steps)s::integer
            AND step.queue_id <> ALL (%(skip_queues)s::integer[])
    ) found
    GROUP BY found.lane, found.queue_id, found.priority
    ORDER BY
        found.lane,
        found.queue_id <= coalesce(
            (%(starts)s::integer[])[array_position(%(lanes)s::smallint[], found.lane)],
            %(first_start)s::integer
        ),
        found.queue_id, found.priority
),
-- include: taken_since
, seen AS MATERIALIZED (
    -- the first ready job of each place, and whether its queue may serve it
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
-- include: burst
            AS burst,
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
), locked AS MATERIALIZED (
    SELECT seen.nth
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
            AND pg_try_advisory_xact_lock_shared(
-- include: lock_class
                , seen.queue_id
            )
    ) queue
    WHERE seen.status = 'open'
    LIMIT %(most_locks)s::integer
), bound AS MATERIALIZED (
    SELECT count(*) AS locks, max(nth) AS last
    FROM locked
), told AS MATERIALIZED (
    SELECT
        seen.*,
        seen.status = 'open' AND EXISTS (SELECT FROM locked WHERE locked.nth = seen.nth) AS held
    FROM seen
    LIMIT (SELECT CASE WHEN locks >= %(most_locks)s::integer THEN last END FROM bound)
), handed AS MATERIALIZED (
    SELECT
        set_config('tenantqueue.lanes', coalesce(array_agg(lane ORDER BY nth)::text, '{}'), true),
        set_config(
            'tenantqueue.queues', coalesce(array_agg(queue_id ORDER BY nth)::text, '{}'), true
        ),
        set_config(
            'tenantqueue.priorities', coalesce(array_agg(priority ORDER BY nth)::text, '{}'), true
        ),
        set_config('tenantqueue.ids', coalesce(array_agg(first_id ORDER BY nth)::text, '{}'), true),
        set_config(
            'tenantqueue.unlimited',
            coalesce((array_agg(DISTINCT queue_id) FILTER (WHERE is_unlimited))::text, '{}'), true
        )
    FROM (
        -- a queue that was contended in a better place is not served in a later one
        SELECT told.*, bool_or(NOT told.held) OVER (PARTITION BY queue_id ORDER BY nth) AS missed
        FROM told
        WHERE told.status = 'open'
    ) open
    WHERE open.held AND NOT open.missed
)
SELECT
    (SELECT bound.locks FROM bound CROSS JOIN handed) AS locks,
    array_agg(status) AS statuses,
    array_agg(lane) AS lanes,
    array_agg(queue_id) AS queues,
    array_agg(priority) AS priorities,
    array_agg(first_id) AS first_ids,
    array_agg(held) AS held,
    array_agg(spent_seconds) FILTER (WHERE status = 'spent') AS spent_seconds,
    (
        SELECT array_agg(ARRAY[step.lane, step.queue_id, step.priority, step.id] ORDER BY step.nth)
        FROM step
        WHERE step.nth > 0
    ) AS steps,
    (
        SELECT array_agg(ARRAY[came.lane, came.queue_id, came.priority, came.id])
        FROM (
            SELECT
                arrival.lane, arrival.queue_id, arrival.priority,
                -- there may be earlier ones that were not read
                CASE
                    WHEN min(began.last_id) - %(most_arrivals)s::integer
                        > %(arrivals_after)s::bigint
                    THEN 0
                    ELSE min(arrival.id)
                END AS id
            FROM arrival
            CROSS JOIN began
            WHERE arrival.state = 'ready'
            GROUP BY arrival.lane, arrival.queue_id, arrival.priority
        ) came
    ) AS arrivals,
    (SELECT began.last_id FROM began) AS last_arrival,
    EXISTS (
        SELECT
        FROM tenantqueue_taskcontrol c
        WHERE c.paused OR c.num_slots IS NOT NULL OR c.max_per_second IS NOT NULL
    ) AS has_controls,
    pg_stat_get_tuples_updated(to_regclass('tenantqueue_tenantqueue')) AS edits,
    pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_ready'))
        + pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_slots'))
        - (SELECT began.entries FROM began) AS entries
FROM told
