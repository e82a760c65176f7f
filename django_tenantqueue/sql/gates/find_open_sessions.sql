-- Walk over up to `most` sessions that have a line or a job inside, from `after` on, and say in which of
-- them a release would change something: what a crash or a lock has kept from its release is found
-- here.
-- Locks: none.
-- Indexes: tenantqueue_job_session_line, tenantqueue_job_session_inside,
-- tenantqueue_job_session_block.
WITH RECURSIVE step AS (
    SELECT %(after)s::text AS key, 0 AS nth
    UNION ALL
    SELECT
        least(
            (
                SELECT j.session_key
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'session' AND j.session_key > step.key
                ORDER BY j.session_key
                LIMIT 1
            ),
            (
                SELECT j.session_key
                FROM tenantqueue_job_hot j
                WHERE j.session_key IS NOT NULL AND j.session_key > step.key
                    AND (j.held_by IS NULL OR j.held_by IN ('user', 'exclusive', 'task', 'details'))
                ORDER BY j.session_key
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
-- include: sessions
,
-- include: misplaced
SELECT
    gate.key,
    gate.has_rejected OR gate.key IN (SELECT misplaced.key FROM misplaced) AS is_open
FROM gate
ORDER BY gate.key
