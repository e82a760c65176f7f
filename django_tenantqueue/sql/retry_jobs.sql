-- Bring finished jobs back from the history, with a fresh number of attempts and their errors kept.
-- Locks: the history rows in id order. Index: the primary key of each history leaf.
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_history j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('error', 'cancelled')
    ORDER BY j.id
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM tenantqueue_job_history AS job
    USING target
    WHERE job.id = target.id
    RETURNING job.*
)
INSERT INTO tenantqueue_job_hot (
    id, run_at, created_at, monitor_id, timeout_seconds, hard_timeout_seconds, queue_id, claim_seq, lane, priority,
    max_attempts, is_async, state, name, source_type, source_id, source_method, args,
    session_key, user_key, exclusive_key, unique_key, labels, created_by, context, stats, errors
)
SELECT
    id, clock_timestamp(), created_at, monitor_id, timeout_seconds, hard_timeout_seconds, queue_id, claim_seq,
    CASE WHEN %(by_tenant)s::boolean THEN 0 ELSE priority END, priority, max_attempts, is_async, 'created', name, source_type, source_id, source_method, args,
    session_key, user_key, exclusive_key, unique_key, labels, created_by, context, stats, errors
FROM removed
RETURNING id
