-- The lanes and priorities in which the queue `queue_id` has ready jobs, one probe of
-- tenantqueue_job_ready for each.
-- include: ready_lanes
, step AS (
    SELECT level.lane, best.priority
    FROM level
    CROSS JOIN LATERAL (
        SELECT j.priority
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = level.lane AND j.queue_id = %(queue_id)s::integer
        ORDER BY j.priority
        LIMIT 1
    ) best
    UNION ALL
    SELECT step.lane, next.priority
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.priority
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = step.lane AND j.queue_id = %(queue_id)s::integer
            AND j.priority > step.priority
        ORDER BY j.priority
        LIMIT 1
    ) next
)
