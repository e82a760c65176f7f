-- Move waiting jobs to another queue. Locks: the job rows, SKIP LOCKED. Index: primary key.
WITH target AS MATERIALIZED (
    SELECT j.id, j.queue_id AS was
    FROM tenantqueue_job_hot j
    JOIN tenantqueue_tenantqueue q ON q.id = j.queue_id
    JOIN tenantqueue_tenantqueue other ON other.id = %(queue_id)s::integer
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'ready')
        AND (
            other.tenant = q.tenant
            OR coalesce(
                j.session_key, j.limit_user, j.exclusive_key, j.unique_key, j.monitor_id::text
            ) IS NULL
        )
    ORDER BY j.id
    FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET queue_id = %(queue_id)s
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (ARRAY(SELECT t.id FROM target t))
RETURNING job.id, (ARRAY(SELECT t.was FROM target t))[
    width_bucket(job.id, ARRAY(SELECT t.id FROM target t))
] AS was
