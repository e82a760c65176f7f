-- Walk over up to `most` exclusive keys that have a line, from `after` on, and say in which of them a release
-- would change something: what a crash or a lock has kept from its release is found here.
-- Locks: none. Indexes: tenantqueue_job_exclusive_line, tenantqueue_job_exclusive_inside,
-- tenantqueue_job_exclusive_reject.
WITH RECURSIVE step AS (
    (
        SELECT j.exclusive_key AS key, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'exclusive' AND j.exclusive_key > %(after)s::text
        ORDER BY j.exclusive_key
        LIMIT 1
    )
    UNION ALL
    SELECT next.key, step.nth + 1
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.exclusive_key AS key
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'exclusive' AND j.exclusive_key > step.key
        ORDER BY j.exclusive_key
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
)
SELECT
    step.key,
    NOT EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE j.exclusive_key = step.key
            AND j.state IN ('created', 'queued', 'running')
    ) OR coalesce((
        -- it is to be rejected
        SELECT true
        FROM tenantqueue_job_hot j
        WHERE j.exclusive_key = step.key AND j.held_by = 'exclusive'
            AND j.unique_mode = 'while_executing_reject' AND j.attempt = 0
        LIMIT 1
    ), false) AS is_open
FROM step
ORDER BY step.nth
