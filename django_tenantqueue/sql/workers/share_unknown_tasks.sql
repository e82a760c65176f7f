-- Write which tasks this worker lacks (`names`). Return the tasks that any worker lacks, each with
-- whether another worker may have it: one that has not said that it lacks it, and that serves
-- all queues, tenants and kinds of jobs that this one serves. Processes of executors and their
-- dispatchers leave no job to others.
-- Locks: the worker's row. Indexes: primary key, tenantqueue_worker_unknown; the workers are read
-- by a sequential scan on purpose, for they are few.
WITH written AS (
    UPDATE tenantqueue_worker
    SET unknown_tasks = nullif(%(names)s::text[], '{}')
    WHERE id = %(worker)s::bigint
        AND unknown_tasks IS DISTINCT FROM nullif(%(names)s::text[], '{}')
), lacking AS (
    SELECT unnest(%(names)s::text[]) AS task
    UNION
    SELECT unnest(w.unknown_tasks)
    FROM tenantqueue_worker w
    WHERE w.unknown_tasks IS NOT NULL
)
SELECT
    lacking.task,
    EXISTS (
        SELECT
        FROM tenantqueue_worker me
        JOIN tenantqueue_worker w
            ON w.id <> me.id AND w.role = 'worker'
            AND NOT (w.draining OR w.stopping)
            AND w.heartbeat_at
                > clock_timestamp() - make_interval(secs => %(silent_seconds)s::float8)
            -- it serves all that this worker does
            AND (w.queues = '{}' OR (me.queues <> '{}' AND me.queues <@ w.queues))
            AND (
                w.exclude_queues <@ me.exclude_queues
                OR (me.queues <> '{}' AND NOT me.queues && w.exclude_queues)
            )
            AND (w.tenants = '{}' OR (me.tenants <> '{}' AND me.tenants <@ w.tenants))
            AND sign(w.threads) >= sign(me.threads) AND sign(w.async_slots) >= sign(me.async_slots)
        WHERE me.id = %(worker)s::bigint AND me.role = 'worker'
            AND lacking.task <> ALL (coalesce(w.unknown_tasks, '{}'))
    ) AS is_elsewhere
FROM lacking
