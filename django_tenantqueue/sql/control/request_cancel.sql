-- Ask for the cancellation of jobs that hold a slot. Their worker reads it some times a second.
-- There is no predicate on `state` on purpose (see finish_jobs.sql): an unfinished job has a worker
-- only when it holds a slot.
-- Locks: the job rows in id order, as workers do; waits for what a worker is storing.
-- Index: primary key.
WITH target AS MATERIALIZED (
    SELECT j.id, j.cancel_requested_at IS NULL AS is_new
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.worker_id IS NOT NULL
    ORDER BY j.id
    FOR NO KEY UPDATE
)
UPDATE tenantqueue_job_hot AS job
SET cancel_requested_at = coalesce(job.cancel_requested_at, clock_timestamp())
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (ARRAY(SELECT t.id FROM target t))
RETURNING job.id, (ARRAY(SELECT t.is_new FROM target t))[
    width_bucket(job.id, ARRAY(SELECT t.id FROM target t))
] AS is_new
