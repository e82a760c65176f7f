-- How many jobs a worker process holds. Index: tenantqueue_job_slots, read once whole.
SELECT count(*)
FROM tenantqueue_job_hot
WHERE state IN ('queued', 'running') AND worker_id = %(worker)s::bigint
