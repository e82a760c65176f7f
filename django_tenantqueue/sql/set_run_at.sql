-- Change when waiting jobs may run; a time that has passed makes them ready.
-- Locks: the job rows, SKIP LOCKED. Index: primary key.
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'created')
    ORDER BY j.id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET run_at = %(run_at)s::timestamptz,
    state = CASE
        WHEN %(run_at)s::timestamptz > clock_timestamp() THEN 'scheduled' ELSE 'created'
    END
FROM target
WHERE job.id = target.id
RETURNING job.id
