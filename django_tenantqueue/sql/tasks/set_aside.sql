-- Move jobs of closed tasks (tenantqueue_closedtask) into the lines of their tasks. It reads the
-- first `most` jobs of each gate (`kind` is monitor, limit_user or exclusive) or of each lane of a
-- queue (`kind` is ready). No slot, start or attempt is spent. The answer names the gates that have
-- room now, and the task, whose next start may have come due. A job keeps its turn in its session.
-- Locks: the jobs that move, SKIP LOCKED. Indexes: tenantqueue_job_monitor_line,
-- tenantqueue_job_limit_user_line, tenantqueue_job_exclusive_line, tenantqueue_job_ready, the
-- primary key.
WITH closed AS MATERIALIZED (
    SELECT coalesce(array_agg(c.task::text), '{}') AS names
    FROM tenantqueue_closedtask c
), met AS MATERIALIZED (
    SELECT job.id
    FROM unnest(%(keys)s::text[], %(lanes)s::smallint[], %(queues)s::integer[])
        AS given (key, lane, queue_id)
    CROSS JOIN LATERAL (
        (
            SELECT j.id, j.task
            FROM tenantqueue_job_hot j
            WHERE %(kind)s::text = 'ready' AND j.state = 'ready' AND j.lane = given.lane
                AND j.queue_id = given.queue_id
            ORDER BY j.lane, j.queue_id, j.priority, j.id
            LIMIT %(most)s::integer
        )
        UNION ALL
        (
            SELECT j.id, j.task
            FROM tenantqueue_job_hot j
            -- not "=": see release_monitors.sql
            WHERE %(kind)s::text = 'monitor' AND j.held_by = 'monitor'
                AND j.monitor_id >= CASE WHEN %(kind)s::text = 'monitor' THEN given.key::bigint END
                AND j.monitor_id <= CASE WHEN %(kind)s::text = 'monitor' THEN given.key::bigint END
            ORDER BY j.monitor_id, j.id
            LIMIT %(most)s::integer
        )
        UNION ALL
        (
            SELECT j.id, j.task
            FROM tenantqueue_job_hot j
            WHERE %(kind)s::text = 'limit_user' AND j.held_by = 'limit_user'
                AND j.limit_user = given.key
            ORDER BY j.limit_user, j.priority, j.run_at, j.id
            LIMIT %(most)s::integer
        )
        UNION ALL
        (
            SELECT j.id, j.task
            FROM tenantqueue_job_hot j
            WHERE %(kind)s::text = 'exclusive' AND j.held_by = 'exclusive'
                AND j.exclusive_key = given.key
            ORDER BY j.exclusive_key, j.priority, j.run_at, j.id
            LIMIT %(most)s::integer
        )
    ) job
    WHERE job.task = ANY ((SELECT closed.names FROM closed)::text[])
), locked AS MATERIALIZED (
    SELECT job.id
    FROM met
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = met.id
            AND coalesce(j.held_by, CASE WHEN j.state = 'ready' THEN 'ready' END) = %(kind)s::text
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
)
UPDATE tenantqueue_job_hot AS job
SET state = 'held', held_by = 'task', task_at = NULL
-- not a join: planned for few rows, it would read all of them for each
WHERE job.id = ANY (ARRAY(SELECT locked.id FROM locked))
RETURNING jsonb_build_array(
    job.monitor_id::text, NULL, job.limit_user, job.exclusive_key, false, NULL, job.task
)::text AS gates
