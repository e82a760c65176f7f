-- Jobs of a queue that ended in error, the last to end first, below a job's end and id; at most
-- `most`. Locks: none. Index: tenantqueue_history_ended of each leaf, merged.
-- The conditions compare rows, which says the same as equality: only this index has the order that
-- is then asked for.
SELECT
-- include: pushed_columns
FROM tenantqueue_job_history j
WHERE j.state = 'error'
    AND j.queue_id >= %(queue_id)s::integer
    -- not redundant: leaves are left out by it
    AND j.finished_at <= %(at)s::timestamptz
    AND (j.queue_id, j.finished_at, j.id)
        < (%(queue_id)s::integer, %(at)s::timestamptz, %(id)s::bigint)
ORDER BY j.queue_id DESC, j.finished_at DESC, j.id DESC
LIMIT %(most)s::integer
