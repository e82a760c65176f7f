-- How many jobs of one kind, coroutines or not, each worker process holds.
-- Locks: none. Index: tenantqueue_job_slots, read once whole (it holds running jobs only).
SELECT j.worker_id, count(*) AS jobs
FROM tenantqueue_job_hot j
WHERE j.state IN ('queued', 'running') AND j.is_async = %(is_async)s::boolean
GROUP BY j.worker_id
