-- Move ready jobs of closed tasks (tenantqueue_closedtask) into the lines of their tasks, where no claim
-- meets them: of the first `most` jobs in these lanes of queues. No slot, start or attempt is spent.
-- The gates of the answer are those that have room now; a job keeps its turn in its session.
-- Locks: the jobs that move, SKIP LOCKED. Indexes: tenantqueue_job_ready, the primary key.
WITH closed AS MATERIALIZED (
    SELECT coalesce(array_agg(c.name::text), '{}') AS names
    FROM tenantqueue_closedtask c
), met AS MATERIALIZED (
    SELECT job.id
    FROM unnest(%(lanes)s::smallint[], %(queues)s::integer[]) AS pair (lane, queue_id)
    CROSS JOIN LATERAL (
        SELECT j.id, j.name
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND j.lane = pair.lane AND j.queue_id = pair.queue_id
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT %(most)s::integer
    ) job
    WHERE job.name = ANY ((SELECT closed.names FROM closed)::text[])
), locked AS MATERIALIZED (
    SELECT job.id
    FROM met
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = met.id AND j.state = 'created'
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
)
UPDATE tenantqueue_job_hot AS job
SET state = 'held', held_by = 'task', task_at = NULL
-- not a join: planned for few rows, it would read all of them for each
WHERE job.id = ANY (ARRAY(SELECT locked.id FROM locked))
RETURNING jsonb_build_array(
    job.monitor_id::text, NULL, job.user_key, job.exclusive_key
)::text AS gates
