-- Ids of finished jobs of some queues below `before`, the newest first. Of each queue the newest
-- `most` are looked at; `floor` is where the first queue that has more was left, so that nothing
-- above it is missing. Index: tenantqueue_history_queue of each leaf, merged, once for each queue.
-- The conditions compare rows, which says the same as equality: only this index has the order that
-- is then asked for, while the primary key could be walked for ever.
WITH candidate AS MATERIALIZED (
    SELECT
        job.id, job.state, job.name, wanted.id AS queue_id, job.fits, wanted.id AS newest_of
    FROM unnest(%(queues)s::integer[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT
            j.id, j.state, j.name,
-- include: fits
        FROM tenantqueue_job_history j
        WHERE j.queue_id >= wanted.id
            AND (j.queue_id, j.id) < (wanted.id, %(before)s)
        ORDER BY j.queue_id DESC, j.id DESC
        LIMIT %(most)s
    ) job
),
-- include: seen_of_groups
-- include: page_of_ids
