-- Group the details of a monitor that are in flight or set aside, up to `most` of each, by what
-- they do or wait for. The largest groups come first, at most `groups`. `gate` is the key of the
-- user, or the name of the task, that holds them.
-- Locks: none. Indexes: tenantqueue_job_monitor_inside, tenantqueue_job_monitor_aside.
SELECT job.part, job.queue_id, job.is_async, job.gate, count(*) AS jobs, min(job.id) AS first_id
FROM (
    (
        SELECT
            j.id, j.queue_id, j.is_async,
            CASE
                WHEN j.worker_id IS NOT NULL THEN 'running'
                WHEN j.state = 'scheduled' THEN 'retrying'
                ELSE coalesce(j.held_by, 'ready')
            END AS part,
            CASE WHEN j.held_by = 'limit_user' THEN j.limit_user END AS gate
        FROM tenantqueue_job_hot j
        JOIN tenantqueue_concurrentjobmonitor m ON m.id = j.monitor_id AND m.anchor_id <> j.id
        WHERE j.monitor_id = %(monitor_id)s::bigint
            AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
        LIMIT %(most)s::integer
    )
    UNION ALL
    (
        SELECT j.id, j.queue_id, j.is_async, 'task', j.task
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task' AND j.monitor_id >= %(monitor_id)s::bigint
            AND j.monitor_id <= %(monitor_id)s::bigint
        ORDER BY j.monitor_id, j.id
        LIMIT %(most)s::integer
    )
) job
GROUP BY job.part, job.queue_id, job.is_async, job.gate
ORDER BY jobs DESC, first_id
LIMIT %(groups)s::integer
