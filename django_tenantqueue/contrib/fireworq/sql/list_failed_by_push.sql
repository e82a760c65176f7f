-- Jobs of a queue that ended in error, the newest first, below an id; at most `most`. Locks: none.
-- Index: tenantqueue_history_pushed of each leaf, merged.
-- The conditions compare rows, which says the same as equality: only this index has the order that
-- is then asked for.
SELECT
-- include: pushed_columns
FROM tenantqueue_job_history j
WHERE j.state = 'error'
    AND j.queue_id >= %(queue_id)s::integer
    AND (j.queue_id, j.id) < (%(queue_id)s::integer, %(id)s::bigint)
ORDER BY j.queue_id DESC, j.id DESC
LIMIT %(most)s::integer
