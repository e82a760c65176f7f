-- Make scheduled jobs ready whose time has come, the earliest first, a bounded number at a time.
-- Those that have a gate to pass come before it: of users and exclusive keys, for they have their
-- turn in the session and monitor already.
-- Locks: the job rows, SKIP LOCKED. Index: tenantqueue_job_due, up to now. (A condition on
-- clock_timestamp() could not use it: when nothing is due, all that is scheduled would be read.)
WITH due AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.state = 'scheduled'
        AND j.run_at <= coalesce(%(now)s::timestamptz, statement_timestamp())
    ORDER BY j.run_at
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET state = CASE
        WHEN coalesce(job.limit_user, job.exclusive_key) IS NULL THEN 'ready'
        ELSE 'held'
    END,
    held_by = CASE
        WHEN job.limit_user IS NOT NULL THEN 'limit_user'
        WHEN job.exclusive_key IS NOT NULL THEN 'exclusive'
    END
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (ARRAY(SELECT due.id FROM due))
RETURNING job.id,
-- include: gates_text
