-- The history row of each job in `removed`: the columns of its hot row, but for those that its end
-- changes. They are in `removed` as `new_state`, `new_started_at`, `new_cancel_requested_at`,
-- `new_crashes`, `new_held_by`, `new_result`, `new_result_ref`, `new_errors`, `new_follow_ups`, and
-- `extra`: progress and statistics as JSON, or NULL.
INSERT INTO tenantqueue_job_history (
    id, run_at, created_at, queued_at, started_at, finished_at, expires_at, cancel_requested_at,
    worker_id, monitor_id, timeout_seconds, hard_timeout_seconds, progress_done, progress_total,
    queue_id, claim_seq, lane, priority, attempt, max_attempts, crashes, final, is_async, state,
    name, source_type, source_id, source_method, args, held_by, session_key, user_key,
    exclusive_key, unique_key, unique_mode, session_skip, session_halt, labels, created_by, context,
    progress_message, stats, result, result_ref, errors, previous_id, follow_ups
)
SELECT
    id, run_at, created_at, queued_at, new_started_at, clock_timestamp(), expires_at,
    new_cancel_requested_at, worker_id, monitor_id, timeout_seconds, hard_timeout_seconds,
    coalesce((extra ->> 'done')::float8, progress_done),
    coalesce((extra ->> 'total')::float8, progress_total),
    queue_id, claim_seq, lane, priority, attempt, max_attempts, new_crashes, true, is_async,
    new_state, name, source_type, source_id, source_method, args, new_held_by, session_key,
    user_key, exclusive_key, unique_key, unique_mode, session_skip, session_halt, labels,
    created_by, context,
    coalesce(extra ->> 'message', progress_message), coalesce(extra -> 'stats', stats), new_result,
    new_result_ref, new_errors, previous_id, new_follow_ups
FROM removed
