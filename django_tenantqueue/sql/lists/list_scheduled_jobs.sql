-- Ids of scheduled jobs below `before`, the newest first. The `most` that are due first are looked
-- at; `capped` says that there are more. Index: tenantqueue_job_due.
WITH candidate AS MATERIALIZED (
    SELECT
        j.id, j.state, j.queue_id, j.name,
-- include: fits
    FROM tenantqueue_job_hot j
    WHERE j.state = 'scheduled'
    ORDER BY j.run_at
    LIMIT %(most)s
), seen AS (
    SELECT 0::bigint AS floor, count(*) = %(most)s AS capped
    FROM candidate
)
-- include: page_of_ids
