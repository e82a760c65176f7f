-- Walk over up to `most` users that have a line, from `after` on, and say in which of them a release
-- would change something: what a crash or a lock has kept from its release is found here.
-- Locks: none. Indexes: tenantqueue_job_user_line, tenantqueue_job_user_inside.
WITH RECURSIVE step AS (
    (
        SELECT j.user_key AS key, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'user' AND j.user_key > %(after)s::text
        ORDER BY j.user_key
        LIMIT 1
    )
    UNION ALL
    SELECT next.key, step.nth + 1
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.user_key AS key
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'user' AND j.user_key > step.key
        ORDER BY j.user_key
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
)
SELECT
    step.key,
    inside.jobs <> CASE
        WHEN s.paused OR everybody.paused THEN 0
        ELSE coalesce(s.num_slots, everybody.num_slots, %(num_slots)s::integer)
    END AS is_open
FROM step
LEFT JOIN LATERAL (
    SELECT s.paused, s.num_slots
    FROM tenantqueue_session s
    WHERE s.kind = 'user' AND s.gate_key = step.key
    OFFSET 0
) s ON true
LEFT JOIN LATERAL (
    SELECT s.paused, s.num_slots
    FROM tenantqueue_session s
    WHERE s.kind = 'user' AND s.gate_key = substring(step.key FROM '^(?:[^\\/]|\\.)*/')
    OFFSET 0
) everybody ON true
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM tenantqueue_job_hot j
    WHERE j.user_key = step.key
        AND (j.state IN ('created', 'queued', 'running') OR j.held_by = 'exclusive')
) inside
ORDER BY step.nth
