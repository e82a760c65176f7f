-- Lines of held jobs that move no more until somebody acts: those of sessions that are halted or paused,
-- of users' caps and tasks that are paused, and of monitors that are paused or stand still since so many
-- of their details have failed. Up to `most` lines of each kind are looked at, one probe each.
-- Locks: none. Indexes: tenantqueue_job_session_line, tenantqueue_job_user_line,
-- tenantqueue_job_task_line, tenantqueue_job_monitor_line, tenantqueue_history_monitor for failures,
-- the unique one of (gate_key, kind) of the sessions.
WITH RECURSIVE session_step AS (
    (
        SELECT j.session_key AS key, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'session'
        ORDER BY j.session_key
        LIMIT 1
    )
    UNION ALL
    SELECT next.key, step.nth + 1
    FROM session_step step
    CROSS JOIN LATERAL (
        SELECT j.session_key AS key
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'session' AND j.session_key > step.key
        ORDER BY j.session_key
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
), user_step AS (
    (
        SELECT j.user_key AS key, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'user'
        ORDER BY j.user_key
        LIMIT 1
    )
    UNION ALL
    SELECT next.key, step.nth + 1
    FROM user_step step
    CROSS JOIN LATERAL (
        SELECT j.user_key AS key
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'user' AND j.user_key > step.key
        ORDER BY j.user_key
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
), task_step AS (
    (
        SELECT j.name, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task'
        ORDER BY j.name
        LIMIT 1
    )
    UNION ALL
    SELECT next.name, step.nth + 1
    FROM task_step step
    CROSS JOIN LATERAL (
        SELECT j.name
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task' AND j.name > step.name
        ORDER BY j.name
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
), monitor_step AS (
    (
        SELECT j.monitor_id AS id, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'monitor'
        ORDER BY j.monitor_id
        LIMIT 1
    )
    UNION ALL
    SELECT next.id, step.nth + 1
    FROM monitor_step step
    CROSS JOIN LATERAL (
        SELECT j.monitor_id AS id
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'monitor' AND j.monitor_id > step.id
        ORDER BY j.monitor_id
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
)
SELECT
    'session' AS kind, s.tenant, s.key AS name,
    CASE WHEN s.halted_at IS NULL THEN 'paused' ELSE 'halted' END AS why
FROM session_step step
CROSS JOIN LATERAL (
    SELECT s.tenant, s.key, s.halted_at, s.paused
    FROM tenantqueue_session s
    WHERE s.kind = 'serial' AND s.gate_key = step.key
    OFFSET 0
) s
WHERE s.paused OR s.halted_at IS NOT NULL
UNION ALL
SELECT 'user' AS kind, s.tenant, s.key AS name, 'paused' AS why
FROM user_step step
CROSS JOIN LATERAL (
    SELECT s.tenant, s.key, s.paused
    FROM tenantqueue_session s
    WHERE s.kind = 'user' AND s.gate_key = step.key
    OFFSET 0
) s
WHERE s.paused
UNION ALL
SELECT 'task' AS kind, '' AS tenant, step.name, 'paused' AS why
FROM task_step step
CROSS JOIN LATERAL (
    SELECT c.paused
    FROM tenantqueue_taskcontrol c
    WHERE c.name = step.name
    OFFSET 0
) c
WHERE c.paused
UNION ALL
SELECT
    'monitor' AS kind, m.tenant, m.name || ' #' || m.id AS name,
    CASE WHEN m.paused THEN 'paused' ELSE 'stopped' END AS why
FROM monitor_step step
CROSS JOIN LATERAL (
    SELECT m.id, m.tenant, m.name, m.paused, m.stop_after_failures, m.anchor_id
    FROM tenantqueue_concurrentjobmonitor m
    WHERE m.id = step.id AND m.cancelled_at IS NULL
    OFFSET 0
) m
WHERE m.paused OR m.stop_after_failures <= (
    SELECT count(*)
    FROM (
        SELECT
        FROM tenantqueue_job_history j
        WHERE j.monitor_id = m.id AND j.state = 'error' AND j.id <> m.anchor_id
        LIMIT coalesce(m.stop_after_failures, 0)
    ) failure
)
