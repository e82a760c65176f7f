-- Ids of ready jobs of some queues below `before`, the newest first. Of each queue and priority the
-- newest `most` are looked at; `floor` is where the first of these groups that has more was left,
-- so that nothing above it is missing. Index: tenantqueue_job_ready: lane by lane, then queue by
-- queue and priority by priority, since its order is by id only within these three.
-- The conditions compare rows, which says the same as equality: only this index has the order that
-- is then asked for, while the primary key could be walked for ever.
WITH RECURSIVE
-- include: ready_groups
, candidate AS MATERIALIZED (
    SELECT
        job.id, job.name, 'created' AS state, step.queue_id, job.fits,
        ARRAY[step.lane, step.queue_id, step.priority] AS newest_of
    FROM step
    CROSS JOIN LATERAL (
        SELECT
            j.id, j.name,
-- include: fits
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
