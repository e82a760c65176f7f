-- End jobs of a worker process that died and shall not run again: those whose cancellation was asked
-- for (cancelled), and the others, whose attempts are spent (error).
-- `crashed`: they may be what killed it. The caller has locked them by lock_claims.sql.
-- Index: primary key.
WITH removed AS (
    DELETE FROM tenantqueue_job_hot AS job
    WHERE job.id = ANY (%(ids)s::bigint[]) AND job.worker_id = %(worker)s::bigint
    RETURNING job.*
)
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
    cancel_requested_at, worker_id, monitor_id, timeout_seconds, hard_timeout_seconds, progress_done, progress_total,
    queue_id, claim_seq, lane, priority, attempt, max_attempts,
    CASE WHEN %(crashed)s::boolean THEN least(crashes, 32766) + 1 ELSE crashes END, true, is_async,
    CASE WHEN cancel_requested_at IS NULL THEN 'error' ELSE 'cancelled' END,
    name, source_type, source_id, source_method, args, NULL, session_key, user_key, exclusive_key,
    unique_key, unique_mode, session_skip,
    session_halt, labels, created_by, context, progress_message, stats, result, result_ref,
    CASE
        WHEN jsonb_array_length(errors) >= %(max_errors)s::integer
            THEN errors - 0 || (%(error)s::jsonb || jsonb_build_object('attempt', attempt))
        ELSE coalesce(errors, '[]') || (%(error)s::jsonb || jsonb_build_object('attempt', attempt))
    END
FROM removed
RETURNING id
