-- The lanes and priorities in which the `queues` have ready jobs, one probe of
-- tenantqueue_job_ready for each.
-- include: ready_lanes
, step AS (
    SELECT level.lane, wanted.id AS queue_id, best.priority
    FROM level
    CROSS JOIN unnest(%(queues)s::integer[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT j.priority
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready' AND j.lane = level.lane AND j.queue_id = wanted.id
        ORDER BY j.priority
        LIMIT 1
    ) best
    UNION ALL
    SELECT step.lane, step.queue_id, next.priority
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.priority
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready' AND j.lane = step.lane AND j.queue_id = step.queue_id
            AND j.priority > step.priority
        ORDER BY j.priority
        LIMIT 1
    ) next
)
