-- Walk over up to `most` users that have a line or jobs inside, from `after` on, and say in which of them
-- a release would change something: what a crash or a lock has kept from its release is found here, and
-- what a change of the cap of all users does to each.
-- Locks: none. Indexes: tenantqueue_job_user_line, tenantqueue_job_user_inside.
WITH RECURSIVE step AS (
    SELECT least(
        (
            SELECT j.user_key
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'user' AND j.user_key > %(after)s::text
            ORDER BY j.user_key
            LIMIT 1
        ),
        (
            SELECT j.user_key
            FROM tenantqueue_job_hot j
            WHERE j.user_key IS NOT NULL AND j.user_key > %(after)s::text
                AND (j.state IN ('created', 'queued', 'running') OR j.held_by = 'exclusive')
            ORDER BY j.user_key
            LIMIT 1
        )
    ) AS key, 1 AS nth
    UNION ALL
    SELECT least(
        (
            SELECT j.user_key
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'user' AND j.user_key > step.key
            ORDER BY j.user_key
            LIMIT 1
        ),
        (
            SELECT j.user_key
            FROM tenantqueue_job_hot j
            WHERE j.user_key IS NOT NULL AND j.user_key > step.key
                AND (j.state IN ('created', 'queued', 'running') OR j.held_by = 'exclusive')
            ORDER BY j.user_key
            LIMIT 1
        )
    ), step.nth + 1
    FROM step
    WHERE step.key IS NOT NULL AND step.nth < %(most)s::integer
)
SELECT
    step.key,
    (head.id IS NOT NULL AND inside.jobs < gate.capacity)
    OR (inside.movable > 0 AND inside.jobs > gate.capacity)
    OR inside.is_less_urgent AS is_open
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
    SELECT CASE
        WHEN s.paused OR everybody.paused THEN 0
        ELSE coalesce(s.num_slots, everybody.num_slots, %(num_slots)s::integer)
    END AS capacity
) gate
LEFT JOIN LATERAL (
    SELECT j.id, j.priority, j.run_at
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'user' AND j.user_key = step.key
    ORDER BY j.user_key, j.priority, j.run_at, j.id
    LIMIT 1
) head ON true
CROSS JOIN LATERAL (
    SELECT
        count(*) AS jobs,
        count(*) FILTER (WHERE j.state IN ('created', 'held')) AS movable,
        coalesce(
            bool_or(
                j.state IN ('created', 'held')
                AND (head.priority, head.run_at, head.id) < (j.priority, j.run_at, j.id)
            ),
            false
        ) AS is_less_urgent
    FROM tenantqueue_job_hot j
    WHERE j.user_key = step.key
        AND (j.state IN ('created', 'queued', 'running') OR j.held_by = 'exclusive')
) inside
WHERE step.key IS NOT NULL
ORDER BY step.nth
