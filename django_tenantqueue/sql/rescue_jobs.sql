-- Take back the jobs of a worker process that died and may run again. Those it had not started
-- (`started` holds the ids that it had; NULL: unknown, all count as started) lose no attempt.
-- Run after bury_jobs.sql, in the same transaction.
-- Locks: the job rows, SKIP LOCKED: one that an operator holds is rescued at the next try.
-- Index: tenantqueue_job_slots, read once whole (it holds running jobs only).
UPDATE tenantqueue_job_hot AS job
SET state = 'created',
    worker_id = NULL,
    queued_at = NULL,
    started_at = NULL,
    attempt = CASE WHEN dead.started THEN job.attempt ELSE job.attempt - 1 END,
    errors = CASE
        WHEN NOT dead.started THEN job.errors
        WHEN jsonb_array_length(job.errors) >= %(max_errors)s::integer
            THEN job.errors - 0 || (%(error)s::jsonb || jsonb_build_object('attempt', job.attempt))
        ELSE coalesce(job.errors, '[]')
            || (%(error)s::jsonb || jsonb_build_object('attempt', job.attempt))
    END
FROM (
    SELECT
        j.id,
        j.state = 'running' OR %(started)s::bigint[] IS NULL OR j.id = ANY (%(started)s::bigint[])
            AS started
    FROM tenantqueue_job_hot j
    WHERE j.state IN ('queued', 'running') AND j.worker_id = %(worker)s::bigint
    ORDER BY j.id
    FOR NO KEY UPDATE SKIP LOCKED
) dead
WHERE job.id = dead.id AND job.state IN ('queued', 'running')
    AND job.worker_id = %(worker)s::bigint
RETURNING job.id, dead.started
