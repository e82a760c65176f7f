-- Ids of failed or cancelled jobs below `before`, the newest first. The newest `most` in that state
-- are looked at; `floor` is the last of them when there are more.
-- Index: tenantqueue_history_failed of each leaf, merged. The first condition is there for the
-- planner, which must see that the partial index holds every row.
-- The conditions compare rows, which says the same as equality: only this index has the order that
-- is then asked for, while the primary key could be walked for ever.
WITH candidate AS MATERIALIZED (
    SELECT
        j.id, j.state, j.queue_id, j.name,
-- include: fits
    FROM tenantqueue_job_history j
    WHERE j.state IN ('error', 'cancelled')
        AND j.state >= %(state)s::text
        AND (j.state, j.id) < (%(state)s::text, %(before)s)
    ORDER BY j.state DESC, j.id DESC
    LIMIT %(most)s
),
-- include: seen_newest
-- include: page_of_ids
