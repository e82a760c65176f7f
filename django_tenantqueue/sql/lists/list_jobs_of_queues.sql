-- Ids of jobs of some `queues` below `before`, the newest first: of ready jobs, or of finished ones
-- (`final`). Of each queue, and of ready jobs of each lane and priority, the newest `most` are
-- looked at.
-- Indexes: tenantqueue_job_ready, group by group, since its order is by id only within these three;
-- tenantqueue_history_queue of each leaf, merged, once for each queue. The conditions compare rows,
-- which says the same as equality: only these indexes have the order that is then asked for, while
-- the primary key could be walked for ever.
WITH RECURSIVE
-- include: ready_groups
, candidate AS MATERIALIZED (
    SELECT step::text AS newest_of, job.*
    FROM step
    CROSS JOIN LATERAL (
        SELECT
-- include: listed_columns
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready'
            AND (j.lane, j.queue_id, j.priority, j.id)
                < (step.lane, step.queue_id, step.priority, %(before)s)
            AND (j.lane, j.queue_id, j.priority, j.id)
                >= (step.lane, step.queue_id, step.priority, %(after)s)
        ORDER BY j.lane DESC, j.queue_id DESC, j.priority DESC, j.id DESC
        LIMIT %(most)s
    ) job
    WHERE NOT %(final)s::boolean
        AND (%(priority)s::integer IS NULL OR step.priority = %(priority)s::integer)
    UNION ALL
    SELECT wanted.id::text, job.*
    FROM unnest(%(queues)s::integer[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT
-- include: listed_columns
        FROM tenantqueue_job_history j
        WHERE %(final)s::boolean  -- here, or all leaves would be planned
            AND (j.queue_id, j.id) >= (wanted.id, %(after)s)
            AND (j.queue_id, j.id) < (wanted.id, %(before)s)
            AND j.finished_at >= %(month_from)s::timestamptz
            AND j.finished_at < %(month_to)s::timestamptz
        ORDER BY j.queue_id DESC, j.id DESC
        LIMIT %(most)s
    ) job
),
-- include: page_of_ids
