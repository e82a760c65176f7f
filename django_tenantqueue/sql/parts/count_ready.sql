-- The ready jobs of the queue `wanted.id`, counted up to `wanted.most`.
(
    SELECT count(*)
    FROM (
        SELECT
        FROM level
        CROSS JOIN LATERAL (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.state = 'ready' AND j.lane = level.lane AND j.queue_id = wanted.id
            LIMIT wanted.most
        ) job
        LIMIT wanted.most
    ) ready
)
