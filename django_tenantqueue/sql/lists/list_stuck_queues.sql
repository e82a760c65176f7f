-- Queues with ready jobs that nothing starts: paused or without slots (`halted`), or taken by no
-- worker that is alive and goes on (`taken` is false).
-- Order: lane by lane, and by queue inside a lane; after `most` of these steps no further one is
-- looked at. Each step is one probe, however many jobs wait.
-- Indexes: tenantqueue_job_ready, and the primary key of the queues.
-- Fullness is not looked at on purpose: jobs that wait for a slot of their queue are not stuck.
WITH RECURSIVE
-- include: ready_queues
, filter AS MATERIALIZED (
    SELECT DISTINCT w.queues, w.exclude_queues, w.tenants, w.executor
    FROM tenantqueue_worker w
    WHERE NOT w.draining AND NOT w.stopping AND w.role <> 'runner'
        AND w.heartbeat_at > clock_timestamp() - make_interval(secs => %(silent_seconds)s::float8)
), ready AS (
    SELECT
        queue.tenant, queue.name, queue.halted,
        EXISTS (
            SELECT
            FROM filter
            WHERE (filter.queues = '{}' OR queue.name = ANY (filter.queues))
                AND NOT queue.name = ANY (filter.exclude_queues)
                AND (filter.tenants = '{}' OR queue.tenant = ANY (filter.tenants))
                AND filter.executor = queue.executor
        ) AS taken
    FROM (SELECT DISTINCT visit.queue_id FROM visit) visited
    CROSS JOIN LATERAL (
        SELECT
            q.tenant, q.name, coalesce(q.executor, '') AS executor,
            q.paused OR coalesce(q.num_slots = 0, false) AS halted
        FROM tenantqueue_tenantqueue q
        WHERE q.id = visited.queue_id
        OFFSET 0
    ) queue
)
SELECT ready.tenant, ready.name, ready.halted, ready.taken
FROM ready
WHERE ready.halted OR NOT ready.taken
ORDER BY ready.tenant, ready.name
