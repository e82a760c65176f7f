-- Let up to `most` jobs leave the lines of these tasks, if nothing holds their task any more.
-- Locks: the jobs, SKIP LOCKED. Indexes: tenantqueue_job_task_line, the primary key for the update.
WITH free AS MATERIALIZED (
    SELECT given.task
    FROM unnest(%(tasks)s::text[]) AS given (task)
    WHERE NOT EXISTS (
        SELECT
        FROM tenantqueue_taskcontrol c
        WHERE c.task = given.task
            AND (c.paused OR c.num_slots IS NOT NULL OR c.max_per_second IS NOT NULL)
        OFFSET 0
    )
), leaving AS MATERIALIZED (
    SELECT job.id
    FROM free
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task' AND j.task = free.task
        ORDER BY j.task, j.lane, j.queue_id, j.priority, j.id
        LIMIT %(most)s::integer
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    LIMIT %(most)s::integer
)
UPDATE tenantqueue_job_hot AS job
SET task_at = NULL,
-- include: leave_task_line
