-- Queues with ready or active jobs, at most `most`: those whose first ready job waits longest, then
-- those with most active jobs. The first job of each lane counts, in the order of the claim.
-- Order: lane by lane, and by queue inside a lane; after `visits` of these steps no further one is
-- looked at, and at most `active` active jobs are counted; `capped` says that there are more.
-- Indexes: tenantqueue_job_ready, tenantqueue_job_slots, and the primary key of the queues.
WITH RECURSIVE
-- include: ready_queues
, late AS (
    SELECT
        visit.queue_id,
        max(extract(epoch FROM clock_timestamp() - greatest(job.created_at, job.run_at))) AS waits
    FROM visit
    CROSS JOIN LATERAL (
        SELECT j.created_at, j.run_at
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = visit.lane AND j.queue_id = visit.queue_id
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT 1
    ) job
    GROUP BY visit.queue_id
),
-- include: busy
SELECT
    found.queue_id, queue.tenant, queue.name, queue.executor, queue.num_slots, queue.weight,
    queue.paused,
    coalesce(found.active, 0)::integer,
    CASE WHEN found.waits IS NOT NULL THEN greatest(0, found.waits)::float8 END,
    (SELECT count(*) FROM visit) >= %(visits)s::integer
    OR coalesce((SELECT sum(busy.active) FROM busy), 0) >= %(active)s::integer AS capped
FROM (
    SELECT queue_id, busy.active, late.waits
    FROM late
    FULL JOIN busy USING (queue_id)
) found
CROSS JOIN LATERAL (
    SELECT
        q.tenant, q.name, coalesce(q.executor, '') AS executor, q.num_slots, q.weight, q.paused
    FROM tenantqueue_tenantqueue q
    WHERE q.id = found.queue_id
    OFFSET 0
) queue
ORDER BY found.waits DESC NULLS LAST, found.active DESC NULLS LAST, found.queue_id
LIMIT %(most)s
