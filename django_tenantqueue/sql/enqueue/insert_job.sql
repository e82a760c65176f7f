-- Enqueue one job in the caller's transaction: a plain INSERT into the hot leaf.
-- Returns no row when the queue is retired, has a limit of its waiting jobs, or is not visible to
-- this snapshot: the caller then looks for the reason. The queue row is read, never locked.
-- `sleepers` says whether some worker sleeps, in this statement's snapshot. In autocommit mode that
-- saves the look after the commit: see SETTLE_SECONDS in worker/child/sleep.py for why nothing is
-- lost.
-- Indexes: primary key of the queue, tenantqueue_worker_sleeping.
INSERT INTO tenantqueue_job_hot (
    lane, state, run_at, expires_at,
-- include: call_columns
)
SELECT
    %(lane)s::smallint,
    CASE
        WHEN %(run_at)s::timestamptz > clock_timestamp() OR %(delay_seconds)s::float8 > 0
            THEN 'scheduled'
        ELSE 'ready'
    END,
    coalesce(
        %(run_at)s::timestamptz,
        clock_timestamp() + make_interval(secs => %(delay_seconds)s::float8)
    ),
    %(expires_at)s::timestamptz,
-- include: call_values
FROM (SELECT %(args)s::jsonb AS args) job
WHERE NOT coalesce(
    (
        SELECT q.retired OR q.max_waiting IS NOT NULL
        FROM tenantqueue_tenantqueue q
        WHERE q.id = %(queue_id)s::integer
    ),
    NOT %(unseen)s::boolean
)
RETURNING
    id, state,
    EXISTS (
        SELECT FROM tenantqueue_worker w WHERE w.sleeping_until > statement_timestamp()
    ) AS sleepers
