-- Move waiting jobs to another queue. Locks: the job rows, SKIP LOCKED. Index: primary key.
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'created')
    ORDER BY j.id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET queue_id = %(queue_id)s
FROM target
WHERE job.id = target.id
RETURNING job.id
