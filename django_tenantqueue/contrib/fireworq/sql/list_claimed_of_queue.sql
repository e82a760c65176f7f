-- Jobs of a queue that hold a slot, the last claimed first, below a job's time and id; at most
-- `most`. Locks: none. Index: tenantqueue_job_slots. Those of one claim are sorted by their ids.
SELECT
-- include: pushed_columns
FROM tenantqueue_job_hot j
WHERE j.state IN ('queued', 'running')
    AND j.queue_id >= %(queue_id)s::integer
    -- not redundant: it bounds the index
    AND (j.queue_id, j.queued_at) <= (%(queue_id)s::integer, %(at)s::timestamptz)
    AND (j.queue_id, j.queued_at, j.id)
        < (%(queue_id)s::integer, %(at)s::timestamptz, %(id)s::bigint)
ORDER BY j.queue_id DESC, j.queued_at DESC, j.id DESC
LIMIT %(most)s::integer
