-- Cancel jobs that wait (scheduled, held, ready): they move to the history at once. One that had its
-- turn in a session may halt it. `error`: the reason to keep with them, or NULL.
-- Locks: the job rows in id order, SKIP LOCKED: a job that is being claimed is not cancelled here.
-- Index: primary key.
WITH target AS MATERIALIZED (
    SELECT
        j.id, j.session_key IS NOT NULL AND j.held_by IS DISTINCT FROM 'session' AS was_next
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'created')
        -- the anchor of a monitor lasts as long as its details: the monitor is what is cancelled
        AND NOT (
            j.monitor_id IS NOT NULL AND j.held_by IN ('details', 'session') AND EXISTS (
                SELECT
                FROM tenantqueue_concurrentjobmonitor m
                WHERE m.id = j.monitor_id AND m.anchor_id = j.id AND m.cancelled_at IS NULL
            )
        )
    ORDER BY j.id
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM tenantqueue_job_hot AS job
    USING target
    WHERE job.id = target.id
    RETURNING job.*, target.was_next
), ended AS (
    SELECT removed.session_key AS key, removed.id AS job_id, removed.session_halt AS wanted
    FROM removed
    WHERE removed.was_next
),
-- include: halt
INSERT INTO tenantqueue_job_history (
    id, run_at, created_at, queued_at, started_at, finished_at, expires_at, cancel_requested_at,
    worker_id, monitor_id, timeout_seconds, hard_timeout_seconds, progress_done, progress_total, queue_id, claim_seq,
    lane, priority, attempt, max_attempts, crashes, final, is_async, state, name, source_type, source_id,
    source_method, args, held_by, session_key, user_key, exclusive_key, unique_key, unique_mode, session_skip,
    session_halt, labels,
    created_by, context, progress_message, stats, result, result_ref, errors
)
SELECT
    id, run_at, created_at, queued_at, started_at, clock_timestamp(), expires_at,
    coalesce(cancel_requested_at, clock_timestamp()), worker_id, monitor_id, timeout_seconds, hard_timeout_seconds,
    progress_done, progress_total, queue_id, claim_seq, lane, priority, attempt, max_attempts, crashes,
    true, is_async, 'cancelled', name, source_type, source_id, source_method, args, NULL,
    session_key, user_key, exclusive_key, unique_key, unique_mode, session_skip,
    session_halt, labels, created_by, context,
    progress_message, stats, result, result_ref,
    CASE
        WHEN %(error)s::jsonb IS NULL THEN errors
        ELSE coalesce(errors, '[]') || %(error)s::jsonb
    END
FROM removed
RETURNING id, jsonb_build_array(
    monitor_id::text, session_key, user_key, exclusive_key, session_halt
)::text AS gates
