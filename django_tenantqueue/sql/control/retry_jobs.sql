-- Bring finished jobs back from the history, with a fresh number of attempts and their errors kept.
-- A job with gates returns to the first one. Jobs of a cancelled monitor do not change, nor do jobs
-- without their arguments.
-- Locks: the history rows in id order. Indexes: the primary key of each history leaf, that of
-- monitors.
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_history j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('error', 'cancelled')
        -- removed by a retention rule
        AND NOT j.args ? '__tenantqueue__'
        AND NOT EXISTS (
            SELECT
            FROM tenantqueue_concurrentjobmonitor m
            WHERE m.id = j.monitor_id AND m.cancelled_at IS NOT NULL
        )
    ORDER BY j.id
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM tenantqueue_job_history AS job
    -- by arrays: see finish_jobs.sql
    WHERE job.id = ANY (ARRAY(SELECT target.id FROM target))
    RETURNING job.*
), inserted AS (
    INSERT INTO tenantqueue_job_hot (
        lane, state, held_by, run_at, id, created_at, claim_seq, stats, errors, follow_ups,
-- include: enqueued_columns
    )
    SELECT
        CASE WHEN %(by_tenant)s::boolean THEN 0 ELSE priority END,
        CASE WHEN line IS NULL THEN 'ready' ELSE 'held' END, line, clock_timestamp(),
        id, created_at, claim_seq, stats, errors, follow_ups,
-- include: enqueued_columns
    FROM (
        SELECT
            removed.*,
            CASE
                WHEN removed.monitor_id IS NOT NULL AND NOT EXISTS (
                    SELECT
                    FROM tenantqueue_concurrentjobmonitor m
                    WHERE m.anchor_id = removed.id
                ) THEN 'monitor'
                WHEN removed.session_key IS NOT NULL THEN 'session'
                -- the callback waits again for details that were brought back
                WHEN removed.monitor_id IS NOT NULL AND EXISTS (
                    SELECT
                    FROM tenantqueue_concurrentjobmonitor m
                    WHERE m.id = removed.monitor_id
                ) THEN 'details'
                WHEN removed.limit_user IS NOT NULL THEN 'limit_user'
                WHEN removed.exclusive_key IS NOT NULL THEN 'exclusive'
            END AS line
        FROM removed
    ) back
    RETURNING id, state,
-- include: gates_text
)
SELECT
    inserted.id, inserted.gates,
    (ARRAY(SELECT r.state FROM removed r ORDER BY r.id))[
        width_bucket(inserted.id, ARRAY(SELECT r.id FROM removed r ORDER BY r.id))
    ] AS was,
    inserted.state
FROM inserted
