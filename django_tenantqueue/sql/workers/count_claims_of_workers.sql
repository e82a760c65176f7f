-- How many jobs each of some worker processes holds: those for threads, and coroutines.
-- Index: tenantqueue_job_slots, read once whole (it holds running jobs only).
SELECT
    j.worker_id,
    count(*) FILTER (WHERE NOT j.is_async)::integer AS for_threads,
    count(*) FILTER (WHERE j.is_async)::integer AS coroutines
FROM tenantqueue_job_hot j
WHERE j.state IN ('queued', 'running') AND j.worker_id = ANY (%(workers)s::bigint[])
GROUP BY j.worker_id
