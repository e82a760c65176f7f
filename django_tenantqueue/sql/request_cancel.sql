-- Ask for the cancellation of jobs that hold a slot; their worker looks for this several times a
-- second. Index: primary key. There is no predicate on `state` on purpose (see finish_jobs.sql): an
-- unfinished job has a worker when it holds a slot, and only then.
UPDATE tenantqueue_job_hot AS job
SET cancel_requested_at = coalesce(job.cancel_requested_at, clock_timestamp())
WHERE job.id = ANY (%(ids)s::bigint[]) AND job.worker_id IS NOT NULL
RETURNING job.id
