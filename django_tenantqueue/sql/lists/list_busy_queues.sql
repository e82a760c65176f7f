-- Queues with ready jobs, the longest wait first; then, up to `listed` queues, those with most
-- active jobs. `reason`: why none of the ready jobs can start. `jobs` are counted: those that would
-- start if there were more workers, up to `startable` of all, or the blocked ones, up to `blocked`
-- of each reason. Order: lane by lane, and by queue inside a lane; after `visits` of these steps no
-- further one is looked at, and at most `active` active jobs are counted; `capped` says that there
-- are more. Locks: none.
-- Indexes: tenantqueue_job_ready, tenantqueue_job_slots, the primary keys of the queues and of
-- their rates.
WITH RECURSIVE visit AS (
    -- one probe for each queue of a lane, however many jobs wait
    (
        SELECT j.lane, j.queue_id, greatest(j.created_at, j.run_at) AS since, 1 AS step
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready'
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT 1
    )
    UNION ALL
    SELECT next.lane, next.queue_id, next.since, visit.step + 1
    FROM visit
    CROSS JOIN LATERAL (
        SELECT j.lane, j.queue_id, greatest(j.created_at, j.run_at) AS since
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready' AND (j.lane, j.queue_id) > (visit.lane, visit.queue_id)
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT 1
    ) next
    WHERE visit.step < %(visits)s::integer
), ready AS MATERIALIZED (
    SELECT
        visit.queue_id, array_agg(visit.lane ORDER BY visit.lane) AS lanes,
        min(visit.since) AS since
    FROM visit
    GROUP BY visit.queue_id
), busy AS MATERIALIZED (
    SELECT one.queue_id, count(*) AS active
    FROM (
        SELECT j.queue_id
        FROM tenantqueue_job_hot j
        WHERE j.state IN ('queued', 'running')
        LIMIT %(active)s::integer
    ) one
    GROUP BY one.queue_id
), cut AS MATERIALIZED (
    SELECT
        (SELECT count(*) FROM visit) >= %(visits)s::integer AS queues,
        coalesce((SELECT sum(busy.active) FROM busy), 0) >= %(active)s::integer AS active
), longest AS (
    SELECT queue_id, ready.lanes, ready.since, coalesce(busy.active, 0) AS active
    FROM ready
    FULL JOIN busy USING (queue_id)
    ORDER BY ready.since, busy.active DESC NULLS LAST, queue_id
    LIMIT greatest(%(listed)s::integer, (SELECT count(*) FROM ready))
), seen AS MATERIALIZED (
    SELECT
        queue.*, longest.lanes, longest.since, longest.active,
        least(free.slots, free.starts) AS room,
        CASE
            WHEN longest.lanes IS NULL THEN NULL
            WHEN queue.paused THEN 'paused'
            WHEN free.slots < 1 THEN 'slots'
            WHEN free.starts < 1 THEN 'rate'
        END AS reason
    FROM longest
    CROSS JOIN cut
    CROSS JOIN LATERAL (
        SELECT
            q.id, q.tenant, q.name, coalesce(q.executor, '') AS executor, q.num_slots, q.weight,
            q.paused, q.max_per_second, statement_timestamp() AS as_of,
-- include: burst
            AS burst
        FROM tenantqueue_tenantqueue q
        WHERE q.id = longest.queue_id
        OFFSET 0
    ) queue
    CROSS JOIN LATERAL (
        SELECT
            queue.num_slots - CASE
                WHEN cut.active
                THEN (
                    SELECT count(*)
                    FROM (
                        SELECT
                        FROM tenantqueue_job_hot j
                        WHERE queue.num_slots IS NOT NULL AND NOT queue.paused
                            AND j.queue_id = queue.id AND j.state IN ('queued', 'running')
                        LIMIT queue.num_slots
                    ) taken
                )
                ELSE longest.active
            END AS slots,
            CASE
                WHEN queue.max_per_second IS NOT NULL
                THEN floor(
                    queue.burst -
-- include: rate_debt
                )::bigint
            END AS starts
        OFFSET 0
    ) free
), startable AS (
    SELECT one.id, count(*) AS jobs, min(one.since) AS since
    FROM (
        SELECT s.id, first.since
        FROM seen s
        CROSS JOIN LATERAL (
            SELECT job.since
            FROM unnest(s.lanes) AS level (lane)
            CROSS JOIN LATERAL (
                -- when a job has passed its gate, or its rate has allowed it, is not known
                SELECT
                    CASE
                        WHEN coalesce(j.session_key, j.limit_user, j.exclusive_key) IS NULL
                            AND j.monitor_id IS NULL AND s.max_per_second IS NULL
                        THEN greatest(j.created_at, j.run_at)
                    END AS since
                FROM tenantqueue_job_hot j
                WHERE j.state = 'ready' AND j.lane = level.lane AND j.queue_id = s.id
                ORDER BY j.lane, j.queue_id, j.priority, j.id
                LIMIT least(s.room, %(startable)s::integer)
            ) job
            LIMIT greatest(0, least(s.room, %(startable)s::integer))
        ) first
        WHERE s.reason IS NULL AND s.executor = ''
        LIMIT %(startable)s::integer
    ) one
    GROUP BY one.id
), blocked AS (
    SELECT one.id, count(*) AS jobs
    FROM unnest(ARRAY['paused', 'slots', 'rate']) AS kind (reason)
    CROSS JOIN LATERAL (
        SELECT s.id
        FROM seen s
        CROSS JOIN unnest(s.lanes) AS level (lane)
        CROSS JOIN LATERAL (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.state = 'ready' AND j.lane = level.lane AND j.queue_id = s.id
            LIMIT %(blocked)s::integer
        ) job
        WHERE s.reason = kind.reason
        LIMIT %(blocked)s::integer
    ) one
    GROUP BY one.id
)
SELECT
    s.id, s.tenant, s.name, s.executor, s.num_slots, s.weight, s.paused, s.active::integer,
    CASE
        WHEN s.since IS NOT NULL
        THEN greatest(0, extract(epoch FROM clock_timestamp() - s.since))::float8
    END AS waits,
    s.reason, coalesce(startable.jobs, blocked.jobs, 0)::integer AS jobs,
    CASE
        WHEN startable.since IS NOT NULL
        THEN greatest(0, extract(epoch FROM clock_timestamp() - startable.since))::float8
    END AS startable_waits,
    cut.queues OR cut.active AS capped
FROM seen s
CROSS JOIN cut
LEFT JOIN startable USING (id)
LEFT JOIN blocked USING (id)
ORDER BY s.since, s.active DESC, s.id
