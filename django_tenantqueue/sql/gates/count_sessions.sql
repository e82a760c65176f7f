-- What stands in sessions and users' lines now: how many jobs are inside and in line, each counted up to
-- `most`, and the first of both. `ids` are rows of the table of sessions.
-- Locks: none. Indexes: tenantqueue_job_session_line, tenantqueue_job_session_inside,
-- tenantqueue_job_user_line, tenantqueue_job_user_inside.
SELECT
    s.id, inside.jobs AS inside, line.jobs AS line, first.id AS first_id, first.state AS first_state,
    first.run_at AS first_run_at, first.held_by AS first_held_by, first.monitor_id AS first_monitor_id, head.id AS head_id, head.run_at AS head_run_at,
    head.session_skip AS head_skip
FROM unnest(%(ids)s::bigint[]) AS given (id)
JOIN tenantqueue_session s ON s.id = given.id
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (
        (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE s.kind = 'serial' AND j.session_key = s.gate_key
                AND (j.held_by IS NULL OR j.held_by IN ('user', 'exclusive', 'task', 'details'))
            LIMIT %(most)s::integer
        )
        UNION ALL
        (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE s.kind = 'user' AND j.user_key = s.gate_key
                AND (j.state IN ('created', 'queued', 'running') OR j.held_by = 'exclusive')
            LIMIT %(most)s::integer
        )
    ) one
) inside
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (
        (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE s.kind = 'serial' AND j.held_by = 'session' AND j.session_key = s.gate_key
            LIMIT %(most)s::integer
        )
        UNION ALL
        (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE s.kind = 'user' AND j.held_by = 'user' AND j.user_key = s.gate_key
            LIMIT %(most)s::integer
        )
    ) one
) line
LEFT JOIN LATERAL (
    SELECT j.id, j.state, j.run_at, j.held_by, j.monitor_id
    FROM tenantqueue_job_hot j
    WHERE s.kind = 'serial' AND j.session_key = s.gate_key
        AND (j.held_by IS NULL OR j.held_by IN ('user', 'exclusive', 'task', 'details'))
    LIMIT 1
) first ON true
LEFT JOIN LATERAL (
    SELECT j.id, j.run_at, j.session_skip
    FROM tenantqueue_job_hot j
    WHERE s.kind = 'serial' AND j.held_by = 'session' AND j.session_key = s.gate_key
    ORDER BY j.session_key, j.priority, j.run_at, j.id
    LIMIT 1
) head ON true
