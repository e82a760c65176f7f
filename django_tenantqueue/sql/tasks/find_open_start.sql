-- Find the first ready job of an open task in lanes of queues that have jobs of closed tasks
-- (tenantqueue_closedtask). All jobs before `start` were of closed tasks. It reads `most_read` jobs
-- from there, and the first `most_moved` of all, since a job may have come back to the front.
-- `until` is where the reading ended.
-- Locks: none. Index: tenantqueue_job_ready.
WITH closed AS MATERIALIZED (
    SELECT coalesce(array_agg(c.task::text), '{}') AS names
    FROM tenantqueue_closedtask c
)
SELECT
    pair.lane, pair.queue_id, front.jobs, front.closed_jobs, front.first_open, front.last,
    CASE WHEN ahead.id IS NOT NULL THEN ARRAY[ahead.priority, ahead.id] END AS ahead,
    CASE WHEN until.id IS NOT NULL THEN ARRAY[until.priority, until.id] END AS until
FROM unnest(
    %(start_lanes)s::smallint[], %(start_queues)s::integer[], %(start_priorities)s::smallint[],
    %(start_ids)s::bigint[]
) AS pair (lane, queue_id, start_priority, start_id)
CROSS JOIN LATERAL (
    SELECT
        count(*) AS jobs,
        count(*) FILTER (WHERE job.is_closed) AS closed_jobs,
        min(ARRAY[job.priority, job.id]) FILTER (WHERE NOT job.is_closed) AS first_open,
        max(ARRAY[job.priority, job.id]) AS last
    FROM (
        SELECT
            j.priority::bigint, j.id,
            j.task = ANY ((SELECT closed.names FROM closed)::text[]) AS is_closed
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready' AND j.lane = pair.lane AND j.queue_id = pair.queue_id
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT %(most_moved)s::integer
    ) job
) front
LEFT JOIN LATERAL (
    SELECT j.priority::bigint, j.id
    FROM tenantqueue_job_hot j
    WHERE j.state = 'ready' AND j.lane = pair.lane AND j.queue_id = pair.queue_id
        AND (j.priority, j.id) >= (pair.start_priority, pair.start_id)
    ORDER BY j.lane, j.queue_id, j.priority, j.id
    OFFSET %(most_read)s::integer
    LIMIT 1
) until ON true
LEFT JOIN LATERAL (
    SELECT j.priority::bigint, j.id
    FROM tenantqueue_job_hot j
    WHERE j.state = 'ready' AND j.lane = pair.lane AND j.queue_id = pair.queue_id
        AND (j.priority, j.id) >= (pair.start_priority, pair.start_id)
        AND (j.priority, j.id)
            <= (coalesce(until.priority, 32767), coalesce(until.id, 9223372036854775807))
        AND j.task <> ALL ((SELECT closed.names FROM closed)::text[])
    ORDER BY j.lane, j.queue_id, j.priority, j.id
    LIMIT 1
) ahead ON true
