-- Ids of jobs that hold a slot below `before`, the newest first. Up to `most` of all queues are
-- looked at; `capped` says that there are more. Index: tenantqueue_job_slots, which is as small as
-- the fleet.
WITH candidate AS MATERIALIZED (
    SELECT
        j.id, j.state, j.queue_id, j.name,
-- include: fits
    FROM tenantqueue_job_hot j
    WHERE j.state IN ('queued', 'running')
    LIMIT %(most)s
), seen AS (
    SELECT 0::bigint AS floor, count(*) = %(most)s AS capped
    FROM candidate
)
-- include: page_of_ids
