-- First half of a claim: find places with ready jobs and lock up to `most_locks` of their queues.
-- A place is a lane, queue and priority. Sources: places the worker knows, the latest job ids, and
-- `most_steps` steps through the index from a cursor. Order: lane, turn, queue, priority.
-- Locks: tenantqueue_tenantqueue rows, NO KEY UPDATE, SKIP LOCKED; for a queue without a limit a
-- shared advisory lock. It never waits. The locked places travel in transaction-local settings.
-- Indexes: tenantqueue_job_ready for places, the job's primary key for arrivals,
-- tenantqueue_job_slots for fullness, primary keys of queues and rates.
-- Reasoning: docs/explanation/claim.md.
WITH RECURSIVE
-- include: find_places
,
-- include: taken_since
,
-- include: judge_places
, locked AS MATERIALIZED (
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
