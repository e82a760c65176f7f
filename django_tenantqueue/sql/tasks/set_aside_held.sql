-- Move jobs of closed tasks (tenantqueue_closedtask) out of the lines of other gates into the lines of
-- their tasks: of the first `most` jobs before each of these gates of one `kind`.
-- Locks: the jobs that move, SKIP LOCKED. Indexes: tenantqueue_job_monitor_line,
-- tenantqueue_job_user_line, tenantqueue_job_exclusive_line, the primary key.
WITH closed AS MATERIALIZED (
    SELECT coalesce(array_agg(c.name::text), '{}') AS names
    FROM tenantqueue_closedtask c
), met AS MATERIALIZED (
    SELECT job.id
    FROM unnest(%(keys)s::text[]) AS given (key)
    CROSS JOIN LATERAL (
        (
            SELECT j.id, j.name
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
            SELECT j.id, j.name
            FROM tenantqueue_job_hot j
            WHERE %(kind)s::text = 'user' AND j.held_by = 'user' AND j.user_key = given.key
            ORDER BY j.user_key, j.priority, j.run_at, j.id
            LIMIT %(most)s::integer
        )
        UNION ALL
        (
            SELECT j.id, j.name
            FROM tenantqueue_job_hot j
            WHERE %(kind)s::text = 'exclusive' AND j.held_by = 'exclusive'
                AND j.exclusive_key = given.key
            ORDER BY j.exclusive_key, j.priority, j.run_at, j.id
            LIMIT %(most)s::integer
        )
    ) job
    WHERE job.name = ANY ((SELECT closed.names FROM closed)::text[])
), locked AS MATERIALIZED (
    SELECT job.id
    FROM met
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = met.id AND j.held_by = %(kind)s::text
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
)
UPDATE tenantqueue_job_hot AS job
SET held_by = 'task', task_at = NULL
-- not a join: planned for few rows, it would read all of them for each
WHERE job.id = ANY (ARRAY(SELECT locked.id FROM locked))
RETURNING job.id
