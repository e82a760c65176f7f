-- Lines of held jobs that move no more until an operator acts: of sessions that are halted or
-- paused, of paused user limits and tasks, and of monitors that are paused or stopped after
-- failures. At most `most` rows of each kind are looked at, with one probe for a line. Locks: none.
-- Indexes: tenantqueue_session_stopped, tenantqueue_job_session_line,
-- tenantqueue_job_limit_user_line, tenantqueue_job_task_line, tenantqueue_job_monitor_line,
-- tenantqueue_history_monitor for failures.
WITH RECURSIVE step AS (
    (
        SELECT j.monitor_id AS id, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'monitor'
        ORDER BY j.monitor_id
        LIMIT 1
    )
    UNION ALL
    SELECT next.id, step.nth + 1
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.monitor_id AS id
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'monitor' AND j.monitor_id > step.id
        ORDER BY j.monitor_id
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
), stopped AS MATERIALIZED (
    SELECT s.kind, s.tenant, s.key, s.gate_key, s.halted_at
    FROM tenantqueue_session s
    WHERE s.paused OR s.halted_at IS NOT NULL
    ORDER BY s.id
    LIMIT %(most)s::integer
)
SELECT
    CASE stopped.kind WHEN 'limit_user' THEN 'limit_user' ELSE 'session' END AS kind,
    stopped.tenant,
    stopped.key AS name, CASE WHEN stopped.halted_at IS NULL THEN 'paused' ELSE 'halted' END AS why
FROM stopped
WHERE EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE stopped.kind = 'serial' AND j.held_by = 'session' AND j.session_key = stopped.gate_key
        OFFSET 0
    )
    OR EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE stopped.kind = 'limit_user' AND j.held_by = 'limit_user'
            AND j.limit_user = stopped.gate_key
        OFFSET 0
    )
UNION ALL
SELECT 'task', '', c.task, 'paused'
FROM tenantqueue_taskcontrol c
WHERE c.paused AND EXISTS (
    SELECT
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'task' AND j.task = c.task
    OFFSET 0
)
UNION ALL
SELECT
    'monitor', m.tenant, m.name || ' #' || m.id,
    CASE WHEN m.paused THEN 'paused' ELSE 'stopped' END
FROM step
CROSS JOIN LATERAL (
    SELECT m.id, m.tenant, m.name, m.paused, m.stop_after_failures, m.anchor_id
    FROM tenantqueue_concurrentjobmonitor m
    WHERE m.id = step.id AND m.cancelled_at IS NULL
    OFFSET 0
) m
WHERE m.paused OR m.stop_after_failures <=
-- include: failed_details
