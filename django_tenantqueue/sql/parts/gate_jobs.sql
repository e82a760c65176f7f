-- The jobs in the lines before sessions, users and exclusive keys, and those that count inside. One
-- gate is read by (kind, key), from the indexes tenantqueue_job_<kind>_line and
-- tenantqueue_job_<kind>_inside, but in no order.
line_job AS NOT MATERIALIZED (
    SELECT 'session' AS kind, j.session_key AS key
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'session'
    UNION ALL
    SELECT 'limit_user', j.limit_user
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'limit_user'
), inside_job AS NOT MATERIALIZED (
    SELECT
        'session' AS kind, j.session_key AS key, j.priority, j.run_at, j.id, j.session_skip,
        j.state, j.held_by, j.monitor_id, j.attempt = 0 AND j.monitor_id IS NULL AS may_return
    FROM tenantqueue_job_hot j
    WHERE j.session_key IS NOT NULL AND j.held_by IS DISTINCT FROM 'session'
    UNION ALL
    SELECT
        'limit_user', j.limit_user, j.priority, j.run_at, j.id, j.session_skip, j.state,
        j.held_by, j.monitor_id, true
    FROM tenantqueue_job_hot j
    WHERE j.limit_user IS NOT NULL
        AND (j.state IN ('ready', 'queued', 'running') OR j.held_by = 'exclusive')
    UNION ALL
    SELECT
        'exclusive', j.exclusive_key, j.priority, j.run_at, j.id, j.session_skip, j.state,
        j.held_by, j.monitor_id, true
    FROM tenantqueue_job_hot j
    WHERE j.exclusive_key IS NOT NULL AND j.state IN ('ready', 'queued', 'running')
)
