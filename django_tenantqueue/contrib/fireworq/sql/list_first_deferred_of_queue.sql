-- Scheduled jobs of a queue, the first to be due first, above a job's time and id; at most `most`.
-- Locks: none. Index: tenantqueue_job_deferred.
-- The conditions compare rows, which says the same as equality: only this index has the order that
-- is then asked for.
SELECT
-- include: pushed_columns
FROM tenantqueue_job_hot j
WHERE j.state = 'scheduled'
    AND j.queue_id <= %(queue_id)s::integer
    AND (j.queue_id, j.run_at, j.id)
        > (%(queue_id)s::integer, %(at)s::timestamptz, %(id)s::bigint)
ORDER BY j.queue_id, j.run_at, j.id
LIMIT %(most)s::integer
