-- Those of some queues that have ready or active jobs, at most `most`: those whose first ready job
-- waits longest, then those with most active jobs, which are counted up to `active` for each queue.
-- Indexes: tenantqueue_job_ready lane by lane, tenantqueue_job_slots, primary key of the queues.
WITH RECURSIVE
-- include: ready_lanes
SELECT
    queue.id, queue.tenant, queue.name, queue.executor, queue.num_slots, queue.weight, queue.paused,
    busy.active::integer, late.waits, busy.active >= %(active)s::integer AS capped
FROM unnest(%(ids)s::integer[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT
        q.id, q.tenant, q.name, coalesce(q.executor, '') AS executor, q.num_slots, q.weight,
        q.paused
    FROM tenantqueue_tenantqueue q
    WHERE q.id = wanted.id
    OFFSET 0
) queue
CROSS JOIN LATERAL (
    SELECT
-- include: longest_wait
    AS waits
    OFFSET 0  -- read once
) late
CROSS JOIN LATERAL (
    SELECT count(*) AS active
    FROM (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE j.queue_id = wanted.id AND j.state IN ('queued', 'running')
        LIMIT %(active)s
    ) taken
) busy
WHERE late.waits IS NOT NULL OR busy.active > 0
ORDER BY late.waits DESC NULLS LAST, busy.active DESC, queue.id
LIMIT %(most)s
