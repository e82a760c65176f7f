-- Up to `most` tasks that have a line and are not paused, and whether each has a cap or a rate.
-- Locks: none. Index: tenantqueue_job_task_line.
WITH RECURSIVE step AS (
    (
        SELECT j.name, 1 AS nth
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task'
        ORDER BY j.name
        LIMIT 1
    )
    UNION ALL
    SELECT next.name, step.nth + 1
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.name
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task' AND j.name > step.name
        ORDER BY j.name
        LIMIT 1
    ) next
    WHERE step.nth < %(most)s::integer
)
SELECT step.name, coalesce(c.num_slots, c.max_per_second) IS NOT NULL AS is_limited
FROM step
LEFT JOIN LATERAL (
    SELECT c.num_slots, c.max_per_second, c.paused
    FROM tenantqueue_taskcontrol c
    WHERE c.name = step.name
    OFFSET 0
) c ON true
WHERE c.paused IS NOT TRUE
ORDER BY step.nth
