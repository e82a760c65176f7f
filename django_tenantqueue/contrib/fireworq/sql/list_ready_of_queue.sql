-- Ready jobs of a queue, the newest first, below an id; at most `most`. Locks: none.
-- Index: tenantqueue_job_ready, lane by lane and priority by priority, since its order is by id
-- only within these; `most` of each are read.
WITH RECURSIVE
-- include: ready_groups
SELECT job.*
FROM step
CROSS JOIN LATERAL (
    SELECT
        j.id, j.task, j.source_method, j.args::text, j.state, j.created_at, j.run_at, j.queued_at,
        j.finished_at, j.attempt, j.max_attempts
    FROM tenantqueue_job_hot j
    WHERE j.state = 'ready'
        AND (j.lane, j.queue_id, j.priority) >= (step.lane, step.queue_id, step.priority)
        AND (j.lane, j.queue_id, j.priority, j.id)
            < (step.lane, step.queue_id, step.priority, %(id)s::bigint)
    ORDER BY j.lane DESC, j.queue_id DESC, j.priority DESC, j.id DESC
    LIMIT %(most)s::integer
) job
ORDER BY job.id DESC
LIMIT %(most)s::integer
