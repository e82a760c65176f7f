-- For each of these monitors, find another one whose ready detail is claimed before its own first
-- one, because it has the same queue and priority and a lower id.
-- Locks: none. Indexes: tenantqueue_job_monitor_inside, tenantqueue_job_ready.
SELECT given.id, ahead.monitor_id
FROM unnest(%(ids)s::bigint[]) AS given (id)
CROSS JOIN LATERAL (
    SELECT fed.*
    FROM (
        SELECT j.id, j.lane, j.queue_id, j.priority, j.state
        FROM tenantqueue_job_hot j
        WHERE j.monitor_id = given.id AND j.held_by IS NULL
        OFFSET 0
    ) fed
    -- outside: else the planner may read all ready jobs, too
    WHERE fed.state = 'ready'
    ORDER BY fed.id
    LIMIT 1
) own
CROSS JOIN LATERAL (
    SELECT j.monitor_id
    FROM tenantqueue_job_hot j
    WHERE j.state = 'ready' AND j.lane = own.lane AND j.queue_id = own.queue_id
        AND j.priority = own.priority AND j.id < own.id
    ORDER BY j.lane, j.queue_id, j.priority, j.id
    LIMIT 1
) ahead
WHERE ahead.monitor_id IS NOT NULL
