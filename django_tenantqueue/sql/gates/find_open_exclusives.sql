-- Walk over up to `most` exclusive keys that have a line, from `after` on, and say in which of
-- them a release would change something: what a crash or a lock has kept from its release is found
-- here.
-- Locks: none.
-- Indexes: tenantqueue_job_exclusive_line, tenantqueue_job_exclusive_inside,
-- tenantqueue_job_exclusive_reject.
WITH RECURSIVE step AS (
    SELECT %(after)s::text AS key, 0 AS nth
    UNION ALL
    SELECT
        least(
            (
                SELECT j.exclusive_key
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'exclusive' AND j.exclusive_key > step.key
                ORDER BY j.exclusive_key
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
-- include: exclusives
,
-- include: misplaced
SELECT
    gate.key,
    gate.has_rejected OR gate.key IN (SELECT misplaced.key FROM misplaced) AS is_open
FROM gate
ORDER BY gate.key
