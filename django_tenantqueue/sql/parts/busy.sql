-- Queues with active jobs, and how many: at most `active` jobs are counted.
busy AS (
    SELECT one.queue_id, count(*) AS active
    FROM (
        SELECT j.queue_id
        FROM tenantqueue_job_hot j
        WHERE j.state IN ('queued', 'running')
        LIMIT %(active)s
    ) one
    GROUP BY one.queue_id
)
