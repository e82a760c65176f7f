-- Jobs of one task that it has set aside since it is paused, full or beyond its rate, by queue, and
-- how long those of each queue have waited at most. At most `most` jobs are read.
-- Index: tenantqueue_job_task_line.
SELECT
    job.queue_id, count(*)::integer AS jobs,
    max(
        greatest(0, extract(epoch FROM clock_timestamp() - greatest(job.created_at, job.run_at)))
    )::float8 AS wait_seconds
FROM (
    SELECT j.queue_id, j.created_at, j.run_at
    FROM tenantqueue_job_hot j
    WHERE j.held_by = 'task' AND j.task = %(task)s::text
    ORDER BY j.task, j.lane, j.queue_id, j.priority, j.id
    LIMIT %(most)s::integer
) job
GROUP BY job.queue_id
