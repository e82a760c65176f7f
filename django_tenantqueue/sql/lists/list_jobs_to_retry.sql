-- Jobs of a task that wait for another attempt after an error of one class, below `before`, the
-- newest first; at most `most`. Jobs that were retried after their end keep their errors and begin
-- with no attempt: they are left out. Index: tenantqueue_job_errors.
SELECT j.id, j.queue_id
FROM tenantqueue_job_hot j
WHERE j.errors IS NOT NULL AND j.state IN ('scheduled', 'held', 'ready')
    AND j.attempt > 0
    AND left(j.task, 300) = %(task)s::text
    AND tenantqueue_error_class(j.errors) = %(error)s::text
    AND j.id < %(before)s::bigint
ORDER BY j.id DESC
LIMIT %(most)s
