-- How many jobs are in the line of each task, and how many have a slot of it, each counted up to
-- `most`. `ids` are those of the controls.
-- Locks: none. Indexes: tenantqueue_job_task_line, tenantqueue_job_task_inside.
SELECT c.id, inside.jobs AS inside, line.jobs AS line
FROM unnest(%(ids)s::bigint[]) AS given (id)
JOIN tenantqueue_taskcontrol c ON c.id = given.id
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE j.task = c.task AND j.task_at IS NOT NULL AND j.state IN ('queued', 'running')
        ORDER BY j.task, j.queue_id
        LIMIT %(most)s::integer
    ) one
) inside
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task' AND j.task = c.task
        ORDER BY j.task, j.lane
        LIMIT %(most)s::integer
    ) one
) line
