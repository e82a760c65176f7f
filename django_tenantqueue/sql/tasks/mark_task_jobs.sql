-- Count jobs that were claimed before their task was capped: they get a slot of the task.
-- Locks: the jobs, SKIP LOCKED. The next sweep counts a job that is left out.
-- Index: tenantqueue_job_slots, read once whole when any task has a cap.
WITH capped AS MATERIALIZED (
    SELECT array_agg(c.task::text) AS names
    FROM tenantqueue_taskcontrol c
    WHERE c.num_slots IS NOT NULL
), uncounted AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE (SELECT capped.names FROM capped) IS NOT NULL
        AND j.state IN ('queued', 'running') AND j.task_at IS NULL
        AND j.task = ANY ((SELECT capped.names FROM capped)::text[])
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET task_at = clock_timestamp()
-- not a join: planned for few rows, it would read all of them for each
WHERE job.id = ANY (ARRAY(SELECT uncounted.id FROM uncounted))
RETURNING job.id
