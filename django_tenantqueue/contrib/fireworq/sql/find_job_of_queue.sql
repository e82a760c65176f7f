-- An unfinished job of a queue. Locks: none. Index: primary key.
SELECT
-- include: pushed_columns
FROM tenantqueue_job_hot j
WHERE j.queue_id = %(queue_id)s::integer AND j.id = %(id)s::bigint
