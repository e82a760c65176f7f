-- The history row of each job in `removed`: the columns of its hot row, but for those that its end
-- changes. They are in `removed` as `new_state`, `new_started_at`, `new_cancel_requested_at`,
-- `new_crashes`, `new_held_by`, `new_result`, `new_result_ref`, `new_errors`, `new_follow_ups`, and
-- `extra`: progress and statistics as JSON, or NULL.
INSERT INTO tenantqueue_job_history (
    final, finished_at, state, started_at, cancel_requested_at, crashes, held_by, result,
    result_ref, errors, follow_ups, progress_done, progress_total, progress_message, stats,
    id, lane, run_at, created_at, queued_at, expires_at, worker_id, claim_seq, attempt,
-- include: enqueued_columns
)
SELECT
    true, clock_timestamp(), new_state, new_started_at, new_cancel_requested_at, new_crashes,
    new_held_by, new_result, new_result_ref, new_errors, new_follow_ups,
    coalesce((extra ->> 'done')::float8, progress_done),
    coalesce((extra ->> 'total')::float8, progress_total),
    coalesce(extra ->> 'message', progress_message), coalesce(extra -> 'stats', stats),
    id, lane, run_at, created_at, queued_at, expires_at, worker_id, claim_seq, attempt,
-- include: enqueued_columns
FROM removed
