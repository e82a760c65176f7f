-- Move finished jobs from the hot leaf to the history: DELETE … RETURNING and INSERT in one
-- statement (an UPDATE that changes the partition would make concurrent claims fail with 40001).
--
-- Fenced: a job whose claim is no longer (worker, claim_seq) is left alone and not returned.
-- Locks: the job rows, in the order of `ids`, which the caller sorts.
-- Index: the hot leaf's primary key. There is no predicate on `state` on purpose: with it the
-- planner may choose the slot index, which is tiny by its statistics and full of dead entries.
WITH done AS MATERIALIZED (
    SELECT d.*
    FROM unnest(
        %(ids)s::bigint[], %(seqs)s::integer[], %(states)s::text[], %(ages)s::float8[],
        %(results)s::text[], %(result_refs)s::text[], %(extras)s::text[]
    ) AS d (id, claim_seq, state, age, result, result_ref, extra)
), removed AS (
    DELETE FROM tenantqueue_job_hot AS job
    USING done
    WHERE job.id = done.id AND job.claim_seq = done.claim_seq AND job.worker_id = %(worker)s::bigint
        -- not redundant: it keeps a plan made while the table was empty from walking all of it
        AND job.id = ANY (%(ids)s::bigint[])
    RETURNING
        job.*, done.state AS new_state, done.age, done.result AS new_result,
        done.result_ref AS new_result_ref, done.extra::jsonb AS extra
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
    id, run_at, created_at, queued_at,
    clock_timestamp() - make_interval(secs => age), clock_timestamp(),
    expires_at, cancel_requested_at, worker_id, monitor_id, timeout_seconds, hard_timeout_seconds,
    coalesce((extra ->> 'done')::float8, progress_done),
    coalesce((extra ->> 'total')::float8, progress_total),
    queue_id, claim_seq, lane, priority, attempt, max_attempts, crashes, true, is_async, new_state, name,
    source_type, source_id, source_method, args, held_by, session_key, user_key, exclusive_key,
    unique_key, unique_mode, session_skip,
    session_halt, labels, created_by, context,
    coalesce(extra ->> 'message', progress_message),
    coalesce(extra -> 'stats', stats),
    new_result::jsonb, new_result_ref,
    CASE
        WHEN extra -> 'error' IS NULL THEN errors
        WHEN jsonb_array_length(errors) >= %(max_errors)s::integer THEN errors - 0 || (extra -> 'error')
        ELSE coalesce(errors, '[]') || (extra -> 'error')
    END
FROM removed
RETURNING id
