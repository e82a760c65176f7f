-- For how many seconds the first ready job of a lane has waited in the queue `wanted.id`, at most.
(
    SELECT max(
        greatest(0, extract(epoch FROM clock_timestamp() - greatest(job.created_at, job.run_at)))
    )::float8
    FROM level
    CROSS JOIN LATERAL (
        SELECT j.created_at, j.run_at
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = level.lane AND j.queue_id = wanted.id
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT 1
    ) job
)
