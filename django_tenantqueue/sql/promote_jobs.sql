-- Make scheduled jobs ready whose time has come, the earliest first, a bounded number at a time.
-- Locks: the job rows, SKIP LOCKED. Index: tenantqueue_job_due, up to now. (A condition on
-- clock_timestamp() could not use it: when nothing is due, all that is scheduled would be read.)
WITH due AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.state = 'scheduled' AND j.run_at <= coalesce(%(now)s::timestamptz, statement_timestamp())
    ORDER BY j.run_at
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET state = 'created'
FROM due
WHERE job.id = due.id
RETURNING job.id
