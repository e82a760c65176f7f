-- Tasks of scheduled jobs whose last error is of a class: UnknownTask, with which workers give jobs
-- back for some seconds. The `most` jobs that are due first are looked at. Index:
-- tenantqueue_job_due.
WITH candidate AS MATERIALIZED (
    SELECT j.task, j.errors
    FROM tenantqueue_job_hot j
    WHERE j.state = 'scheduled'
    ORDER BY j.run_at
    LIMIT %(most)s::integer
)
SELECT candidate.task, count(*) AS jobs
FROM candidate
WHERE candidate.errors -> -1 ->> 'class' = %(error_class)s::text
GROUP BY candidate.task
ORDER BY jobs DESC, candidate.task
