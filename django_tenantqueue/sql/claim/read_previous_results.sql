-- What the jobs returned that claimed ones follow. `is_there`: false when such a job is gone. One
-- that was brought back after its end is in the hot leaf, and has no result.
-- Locks: none. Indexes: the primary key of each history leaf, that of the hot leaf.
SELECT
    job.id, previous.result::text, previous.result_ref,
    previous.id IS NOT NULL OR EXISTS (
        SELECT FROM tenantqueue_job_hot again WHERE again.id = job.previous_id
    ) AS is_there
FROM tenantqueue_job_hot job
LEFT JOIN LATERAL (
    SELECT p.id, p.result, p.result_ref
    FROM tenantqueue_job_history p
    WHERE p.id = job.previous_id
    OFFSET 0
) previous ON true
WHERE job.id = ANY (%(ids)s::bigint[])
