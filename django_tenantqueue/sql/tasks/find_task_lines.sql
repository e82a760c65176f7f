-- Up to `most` tasks that have a line and are not paused, and whether each has a cap or a rate.
-- Locks: none. Index: tenantqueue_job_task_line.
WITH RECURSIVE step AS (
    (
        SELECT j.task, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task'
        ORDER BY j.task
        LIMIT 1
    )
    UNION ALL
    SELECT next.task, step.nth + 1
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.task
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task' AND j.task > step.task
        ORDER BY j.task
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
)
SELECT step.task, coalesce(c.num_slots, c.max_per_second) IS NOT NULL AS is_limited
FROM step
LEFT JOIN LATERAL (
    SELECT c.num_slots, c.max_per_second, c.paused
    FROM tenantqueue_taskcontrol c
    WHERE c.task = step.task
    OFFSET 0
) c ON true
WHERE c.paused IS NOT TRUE
ORDER BY step.nth
