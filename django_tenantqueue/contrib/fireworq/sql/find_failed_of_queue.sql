-- A job of a queue that ended in error. Locks: none.
-- Index: tenantqueue_history_pushed of each leaf.
SELECT
-- include: pushed_columns
FROM tenantqueue_job_history j
WHERE j.state = 'error' AND j.queue_id = %(queue_id)s::integer AND j.id = %(id)s::bigint
