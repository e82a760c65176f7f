-- Walk over up to `most` sessions that have a line or a job inside, from `after` on, and say in which of
-- them a release would change something: what a crash or a lock has kept from its release is found here.
-- See release_sessions.sql for what moves.
-- Locks: none. Indexes: tenantqueue_job_session_line, tenantqueue_job_session_inside,
-- tenantqueue_job_session_block.
WITH RECURSIVE step AS (
    SELECT least(
        (
            SELECT j.session_key
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'session' AND j.session_key > %(after)s::text
            ORDER BY j.session_key
            LIMIT 1
        ),
        (
            SELECT j.session_key
            FROM tenantqueue_job_hot j
            WHERE j.session_key IS NOT NULL AND j.session_key > %(after)s::text
                AND (j.held_by IS NULL OR j.held_by IN ('user', 'exclusive', 'task', 'details'))
            ORDER BY j.session_key
            LIMIT 1
        )
    ) AS key, 1 AS nth
    UNION ALL
    SELECT least(
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
    ), step.nth + 1
    FROM step
    WHERE step.key IS NOT NULL AND step.nth < %(most)s::integer
)
SELECT
    step.key,
    inside.is_overtaken
    OR CASE
        WHEN s.paused OR s.halted_at IS NOT NULL THEN inside.movable > 0
        WHEN head.id IS NULL THEN false
        WHEN inside.jobs > 0 THEN inside.is_less_urgent
        WHEN head.run_at <= statement_timestamp() THEN true
        WHEN CASE WHEN s.on_wait <> '' THEN s.on_wait = 'skip' ELSE head.session_skip END THEN (
            -- the first job of each priority, until one is due, which overtakes the others
            WITH RECURSIVE level AS (
                SELECT head.priority, head.run_at
                UNION ALL
                SELECT next.priority, next.run_at
                FROM level
                CROSS JOIN LATERAL (
                    SELECT j.priority, j.run_at
                    FROM tenantqueue_job_hot j
                    WHERE j.held_by = 'session' AND j.session_key = step.key
                        AND j.priority > level.priority
                    ORDER BY j.session_key, j.priority, j.run_at, j.id
                    LIMIT 1
                ) next
                WHERE level.run_at > statement_timestamp()
            )
            SELECT bool_or(
                level.run_at <= statement_timestamp() AND (
                    s.on_wait = 'skip' OR NOT EXISTS (
                        SELECT
                        FROM tenantqueue_job_hot j
                        WHERE j.held_by = 'session' AND j.session_key = step.key
                            AND NOT j.session_skip AND j.run_at > j.created_at
                            AND j.priority < level.priority
                        OFFSET 0
                    )
                )
            )
            FROM level
        )
        ELSE false
    END AS is_open
FROM step
LEFT JOIN LATERAL (
    SELECT s.paused, s.halted_at, s.on_wait
    FROM tenantqueue_session s
    WHERE s.kind = 'serial' AND s.gate_key = step.key
    OFFSET 0
) s ON true
LEFT JOIN LATERAL (
    SELECT j.id, j.priority, j.run_at, j.session_skip
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'session' AND j.session_key = step.key
    ORDER BY j.session_key, j.priority, j.run_at, j.id
    LIMIT 1
) head ON true
CROSS JOIN LATERAL (
    SELECT
        count(*) AS jobs,
        count(*) FILTER (WHERE job.movable) AS movable,
        coalesce(bool_or(job.is_overtaken), false) AS is_overtaken,
        coalesce(
            bool_or(
                job.movable AND head.run_at <= statement_timestamp()
                AND (head.priority, head.run_at, head.id) < (job.priority, job.run_at, job.id)
            ),
            false
        ) AS is_less_urgent
    FROM (
        SELECT
            j.id, j.priority, j.run_at,
            j.attempt = 0 AND j.state IN ('created', 'held') AND j.monitor_id IS NULL AS movable,
            j.state = 'scheduled' AND CASE
                WHEN s.on_wait <> '' THEN s.on_wait = 'skip' ELSE j.session_skip
            END AS is_overtaken
        FROM tenantqueue_job_hot j
        WHERE j.session_key = step.key
            AND (j.held_by IS NULL OR j.held_by IN ('user', 'exclusive', 'task', 'details'))
    ) job
) inside
WHERE step.key IS NOT NULL
ORDER BY step.nth
