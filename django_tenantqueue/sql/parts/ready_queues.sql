-- Queues with ready jobs, lane by lane and in the order of their ids: one probe of
-- tenantqueue_job_ready for each, however many jobs wait, and at most `visits` of them.
visit AS (
    (
        SELECT j.lane, j.queue_id, 1 AS step
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created'
        ORDER BY j.lane, j.queue_id
        LIMIT 1
    )
    UNION ALL
    SELECT next.lane, next.queue_id, visit.step + 1
    FROM visit
    CROSS JOIN LATERAL (
        SELECT j.lane, j.queue_id
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND (j.lane, j.queue_id) > (visit.lane, visit.queue_id)
        ORDER BY j.lane, j.queue_id
        LIMIT 1
    ) next
    WHERE visit.step < %(visits)s::integer
)
