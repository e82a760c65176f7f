-- Ids of jobs that hold a slot below `before`, the newest first. Up to `most` of all queues are
-- looked at; `capped` says that there are more. Index: tenantqueue_job_slots, which is as small as
-- the fleet.
WITH candidate AS MATERIALIZED (
    SELECT j.id, j.state, j.queue_id, j.name
    FROM tenantqueue_job_hot j
    WHERE j.state IN ('queued', 'running')
    LIMIT %(most)s
), seen AS (
    SELECT count(*) = %(most)s AS capped
    FROM candidate
)
SELECT 0::bigint AS floor, seen.capped, found.id
FROM seen
LEFT JOIN LATERAL (
    SELECT candidate.id
    FROM candidate
    WHERE candidate.id < %(before)s
        AND (%(states)s::text[] IS NULL OR candidate.state = ANY (%(states)s::text[]))
        AND (%(queues)s::integer[] IS NULL OR candidate.queue_id = ANY (%(queues)s::integer[]))
        AND (%(name)s::text IS NULL OR candidate.name = %(name)s::text)
    ORDER BY candidate.id DESC
    LIMIT %(page)s
) found ON true
