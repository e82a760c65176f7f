-- Walk over up to `most` users that have a line or jobs inside, from `after` on, and say in which of
-- them a release would change something: what a crash or a lock has kept from its release is found
-- here.
-- Locks: none.
-- Indexes: tenantqueue_job_user_line, tenantqueue_job_user_inside.
WITH RECURSIVE step AS (
    SELECT %(after)s::text AS key, 0 AS nth
    UNION ALL
    SELECT
        least(
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
        ),
        step.nth + 1
    FROM step
    WHERE step.key IS NOT NULL AND step.nth < %(most)s::integer
), given AS MATERIALIZED (
    SELECT step.key
    FROM step
    WHERE step.nth > 0 AND step.key IS NOT NULL
),
-- include: users
,
-- include: misplaced
SELECT
    gate.key,
    gate.has_rejected OR gate.key IN (SELECT misplaced.key FROM misplaced) AS is_open
FROM gate
ORDER BY gate.key
