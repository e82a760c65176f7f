-- Ids of ready jobs of some queues below `before`, the newest first. Of each queue and priority the
-- newest `most` are looked at; `floor` is where the first of these groups that has more was left,
-- so that nothing above it is missing. Index: tenantqueue_job_ready: lane by lane, then queue by
-- queue and priority by priority, since its order is by id only within these three.
-- The conditions compare rows, which says the same as equality: only this index has the order that
-- is then asked for, while the primary key could be walked for ever.
WITH RECURSIVE
-- include: ready_lanes
, step AS (
    SELECT level.lane, wanted.id AS queue_id, best.priority
    FROM level
    CROSS JOIN unnest(%(queues)s::integer[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT j.priority
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = level.lane AND j.queue_id = wanted.id
        ORDER BY j.priority
        LIMIT 1
    ) best
    UNION ALL
    SELECT step.lane, step.queue_id, next.priority
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.priority
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created'
            AND j.lane = step.lane
            AND j.queue_id = step.queue_id
            AND j.priority > step.priority
        ORDER BY j.priority
        LIMIT 1
    ) next
), candidate AS MATERIALIZED (
    SELECT
        job.id, job.name, 'created' AS state, step.queue_id,
        ARRAY[step.lane, step.queue_id, step.priority] AS newest_of
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.id, j.name
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created'
            AND (j.lane, j.queue_id, j.priority) >= (step.lane, step.queue_id, step.priority)
            AND (j.lane, j.queue_id, j.priority, j.id)
                < (step.lane, step.queue_id, step.priority, %(before)s)
        ORDER BY j.lane DESC, j.queue_id DESC, j.priority DESC, j.id DESC
        LIMIT %(most)s
    ) job
),
-- include: seen_of_groups
-- include: page_of_ids
