-- Let up to `most` jobs go that stand in the lines of these tasks, if nothing holds their task any more:
-- back to the gate of their monitor, user or exclusive key, or they become ready.
-- Locks: the jobs, SKIP LOCKED. Indexes: tenantqueue_job_task_line, the primary key for the update.
WITH free AS MATERIALIZED (
    SELECT given.name
    FROM unnest(%(names)s::text[]) AS given (name)
    WHERE NOT EXISTS (
        SELECT
        FROM tenantqueue_taskcontrol c
        WHERE c.name = given.name AND (c.paused OR c.num_slots IS NOT NULL)
        OFFSET 0
    )
), chosen AS MATERIALIZED (
    SELECT job.id
    FROM free
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task' AND j.name = free.name
        ORDER BY j.name, j.lane, j.queue_id, j.priority, j.id
        LIMIT %(most)s::integer
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    LIMIT %(most)s::integer
)
UPDATE tenantqueue_job_hot AS job
SET task_at = NULL,
    (state, held_by) = (
        SELECT CASE WHEN next.gate IS NULL THEN 'created' ELSE 'held' END, next.gate
        FROM (
            SELECT CASE
                WHEN job.monitor_id IS NOT NULL AND job.id <> (
                    SELECT m.anchor_id
                    FROM tenantqueue_concurrentjobmonitor m
                    WHERE m.id = job.monitor_id
                ) THEN 'monitor'
                WHEN job.user_key IS NOT NULL THEN 'user'
                WHEN job.exclusive_key IS NOT NULL THEN 'exclusive'
            END AS gate
        ) next
    )
-- not a join: planned for few rows, it would read all of them for each
WHERE job.id = ANY (ARRAY(SELECT chosen.id FROM chosen))
RETURNING
    job.state = 'created' AS is_ready,
    jsonb_build_array(
        CASE WHEN job.held_by = 'monitor' THEN job.monitor_id::text END, NULL,
        CASE WHEN job.held_by = 'user' THEN job.user_key END,
        CASE WHEN job.held_by = 'exclusive' THEN job.exclusive_key END
    )::text AS gates
