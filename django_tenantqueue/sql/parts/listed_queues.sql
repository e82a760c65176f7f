-- The first `listed` queues: those of `late` (queue_id, waits) that have waited longest, then those
-- with most active jobs. At most `active` of these jobs are counted; `capped` says that there are
-- more of them, or of the queues.
busy AS (
    SELECT one.queue_id, count(*) AS active
    FROM (
        SELECT j.queue_id
        FROM tenantqueue_job_hot j
        WHERE j.state IN ('queued', 'running')
        LIMIT %(active)s
    ) one
    GROUP BY one.queue_id
), longest AS (
    SELECT queue_id, late.waits, coalesce(busy.active, 0)::integer AS active
    FROM late
    FULL JOIN busy USING (queue_id)
    ORDER BY late.waits DESC NULLS LAST, busy.active DESC NULLS LAST, queue_id
    LIMIT %(listed)s
), listed AS (
    SELECT
        queue.*, longest.active,
        CASE WHEN longest.waits IS NOT NULL THEN greatest(0, longest.waits)::float8 END AS waits,
        (SELECT count(*) FROM visit) >= %(visits)s::integer
        OR coalesce((SELECT sum(busy.active) FROM busy), 0) >= %(active)s::integer AS capped
    FROM longest
    CROSS JOIN LATERAL (
        SELECT
            q.id, q.tenant, q.name, coalesce(q.executor, '') AS executor, q.num_slots, q.weight,
            q.paused
        FROM tenantqueue_tenantqueue q
        WHERE q.id = longest.queue_id
        OFFSET 0
    ) queue
)
