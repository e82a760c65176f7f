-- Queues with ready or active jobs, at most `listed`: those whose first ready job waits longest,
-- then those with most active jobs. The first job of each lane counts, in the order of the claim.
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
-- include: listed_queues
SELECT listed.*
FROM listed
ORDER BY listed.waits DESC NULLS LAST, listed.active DESC, listed.id
