-- Find jobs before exclusive keys that are rejected (while_executing_reject) because another job
-- has passed and has not ended. A job that had an attempt already waits for its next one like any
-- other.
-- Runs inside a release, which holds the gates. Locks: none.
-- Indexes: tenantqueue_job_exclusive_reject, tenantqueue_job_exclusive_inside.
SELECT job.id
FROM unnest(%(keys)s::text[]) AS given (key)
CROSS JOIN LATERAL (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.exclusive_key = given.key AND j.held_by = 'exclusive'
        AND j.unique_mode = 'while_executing_reject' AND j.attempt = 0
    OFFSET 0
) job
WHERE EXISTS (
    SELECT
    FROM tenantqueue_job_hot inside
    WHERE inside.exclusive_key = given.key AND inside.state IN ('ready', 'queued', 'running')
)
ORDER BY job.id
