-- Walk over up to `most` gates of a kind that hold jobs, from `after` on, and say in which of them
-- a release would change something. It finds the releases that a crash or a lock has prevented.
-- Locks: none. Indexes: tenantqueue_job_session_line, tenantqueue_job_session_inside,
-- tenantqueue_job_session_block, tenantqueue_job_limit_user_line,
-- tenantqueue_job_limit_user_inside, tenantqueue_job_exclusive_line,
-- tenantqueue_job_exclusive_inside, tenantqueue_job_exclusive_reject, the unique one of
-- (gate_key, kind).
WITH RECURSIVE step AS (
    SELECT %(after)s::text AS key, 0 AS nth
    UNION ALL
    SELECT
        CASE %(kind)s::text
            WHEN 'session' THEN least(
                (
                    SELECT min(j.session_key)
                    FROM tenantqueue_job_hot j
                    WHERE j.held_by = 'session' AND j.session_key > step.key
                ), (
                    SELECT min(j.session_key)
                    FROM tenantqueue_job_hot j
                    WHERE j.held_by IS DISTINCT FROM 'session' AND j.session_key > step.key
                )
            )
            WHEN 'limit_user' THEN least(
                (
                    SELECT min(j.limit_user)
                    FROM tenantqueue_job_hot j
                    WHERE j.held_by = 'limit_user' AND j.limit_user > step.key
                ), (
                    SELECT min(j.limit_user)
                    FROM tenantqueue_job_hot j
                    WHERE (j.state IN ('ready', 'queued', 'running') OR j.held_by = 'exclusive')
                        AND j.limit_user > step.key
                )
            )
            -- a key without a line has one job inside at most, where it belongs
            ELSE (
                SELECT min(j.exclusive_key)
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'exclusive' AND j.exclusive_key > step.key
            )
        END,
        step.nth + 1
    FROM step
    WHERE step.key IS NOT NULL AND step.nth < %(most)s::integer
), given AS MATERIALIZED (
    SELECT step.key
    FROM step
    WHERE step.nth > 0 AND step.key IS NOT NULL
),
-- include: gate_room
SELECT
    gate.key,
    gate.key IN (SELECT misplaced.key FROM misplaced) OR %(kind)s::text = 'exclusive' AND (
        -- a job that does not wait
        SELECT true
        FROM tenantqueue_job_hot j
        WHERE j.exclusive_key = gate.key AND j.held_by = 'exclusive'
            AND j.unique_mode = 'while_executing_reject' AND j.attempt = 0
        LIMIT 1
    ) IS NOT NULL AS is_open
FROM gate
ORDER BY gate.key
