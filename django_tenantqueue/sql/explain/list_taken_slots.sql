-- The jobs that hold a slot of a queue, at most `most`, the longest first.
-- Locks: none. Index: tenantqueue_job_slots.
SELECT j.id
FROM tenantqueue_job_hot j
WHERE j.queue_id = %(queue_id)s::integer AND j.state IN ('queued', 'running')
ORDER BY j.queue_id, j.queued_at
LIMIT %(most)s::integer
