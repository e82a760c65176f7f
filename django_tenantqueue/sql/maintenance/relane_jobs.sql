-- After a change of PRIORITY_SCOPE: give waiting jobs the lane it asks for, a bounded number at a
-- time. Locks: the job rows, SKIP LOCKED. A sequential scan on purpose: an operator runs it once.
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.lane <> CASE WHEN %(by_tenant)s THEN 0 ELSE j.priority END
        AND j.state IN ('scheduled', 'held', 'ready')
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET lane = CASE WHEN %(by_tenant)s THEN 0 ELSE job.priority END
FROM target
WHERE job.id = target.id
RETURNING job.id
