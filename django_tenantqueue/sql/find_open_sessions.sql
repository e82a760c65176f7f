-- Walk over up to `most` sessions that have a line, from `after` on, and say in which of them a release
-- would change something: what a crash or a lock has kept from its release is found here.
-- Locks: none. Indexes: tenantqueue_job_session_line, tenantqueue_job_session_inside.
WITH RECURSIVE step AS (
    (
        SELECT j.session_key AS key, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'session' AND j.session_key > %(after)s::text
        ORDER BY j.session_key
        LIMIT 1
    )
    UNION ALL
    SELECT next.key, step.nth + 1
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.session_key AS key
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'session' AND j.session_key > step.key
        ORDER BY j.session_key
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
)
SELECT
    step.key,
    coalesce(NOT (s.paused OR s.halted_at IS NOT NULL), true)
    AND NOT EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE j.session_key = step.key
            AND (j.held_by IS NULL OR j.held_by IN ('user', 'exclusive', 'task', 'details'))
    )
    AND (
        head.run_at <= statement_timestamp()
        OR CASE WHEN s.on_wait <> '' THEN s.on_wait = 'skip' ELSE head.session_skip END
    ) AS is_open
FROM step
LEFT JOIN LATERAL (
    SELECT s.paused, s.halted_at, s.on_wait
    FROM tenantqueue_session s
    WHERE s.kind = 'serial' AND s.gate_key = step.key
    OFFSET 0
) s ON true
CROSS JOIN LATERAL (
    SELECT j.run_at, j.session_skip
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'session' AND j.session_key = step.key
    ORDER BY j.session_key, j.priority, j.run_at, j.id
    LIMIT 1
) head
ORDER BY step.nth
