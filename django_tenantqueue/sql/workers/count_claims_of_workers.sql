-- How many jobs each of some worker processes holds: coroutines, others, or both (`is_async` NULL).
-- Index: tenantqueue_job_slots, read once whole (it holds running jobs only).
SELECT j.worker_id, count(*)::integer AS jobs
FROM tenantqueue_job_hot j
WHERE j.state IN ('queued', 'running') AND j.worker_id = ANY (%(workers)s::bigint[])
    AND (%(is_async)s::boolean IS NULL OR j.is_async = %(is_async)s::boolean)
GROUP BY j.worker_id
