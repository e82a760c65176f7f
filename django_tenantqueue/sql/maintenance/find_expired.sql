-- Jobs that wait and have expired, the earliest first, a bounded number: cancel_waiting_jobs.sql
-- cancels them. The anchor of a monitor is not among them: it lasts as long as its details, and is
-- cancelled by the worker that takes it.
-- Locks: the job rows, SKIP LOCKED, not kept: a job that is being claimed, or changed, is passed
-- over.
-- Index: tenantqueue_job_expiry.
SELECT j.id
FROM tenantqueue_job_hot j
WHERE j.expires_at <= statement_timestamp()
    AND j.state IN ('scheduled', 'held', 'ready')
    AND (j.monitor_id IS NULL OR j.held_by IS NULL OR j.held_by NOT IN ('details', 'session'))
ORDER BY j.expires_at
LIMIT %(most)s::integer
FOR NO KEY UPDATE SKIP LOCKED
