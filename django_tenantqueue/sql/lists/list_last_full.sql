-- For some queues with a limit: how many seconds ago all slots were taken last, as far as the last
-- `most` ended jobs of each tell. A queue that has not been full since is left out.
-- Locks: none. Indexes: tenantqueue_history_queue, tenantqueue_job_slots, primary key of queues.
WITH run AS MATERIALIZED (
    SELECT q.id AS queue_id, q.num_slots, job.queued_at, job.finished_at
    FROM unnest(%(ids)s::integer[]) AS given (id)
    JOIN tenantqueue_tenantqueue q ON q.id = given.id
    CROSS JOIN LATERAL (
        (
            SELECT h.queued_at, h.finished_at
            FROM tenantqueue_job_history h
            -- rows, or the primary key might be walked
            WHERE h.queue_id >= q.id AND (h.queue_id, h.id) <= (q.id, 9223372036854775807)
            ORDER BY h.queue_id DESC, h.id DESC
            LIMIT %(most)s::integer
        )
        UNION ALL
        (
            SELECT j.queued_at, NULL
            FROM tenantqueue_job_hot j
            WHERE j.queue_id = q.id AND j.state IN ('queued', 'running')
            LIMIT q.num_slots
        )
    ) job
    WHERE job.queued_at IS NOT NULL
), change AS (
    SELECT run.queue_id, run.num_slots, run.queued_at AS at, 1 AS slots
    FROM run
    UNION ALL
    SELECT run.queue_id, run.num_slots, run.finished_at, -1
    FROM run
    WHERE run.finished_at IS NOT NULL
), level AS (
    SELECT
        change.*,
        sum(change.slots) OVER (
            PARTITION BY change.queue_id ORDER BY change.at, change.slots DESC
            ROWS UNBOUNDED PRECEDING
        ) AS taken
    FROM change
)
SELECT
    level.queue_id,
    greatest(0, extract(epoch FROM clock_timestamp() - max(level.at)))::float8 AS seconds
FROM level
WHERE level.slots < 0 AND level.taken >= level.num_slots - 1
GROUP BY level.queue_id
