-- What a worker process holds by the rows. The process compares that with what it knows of: the
-- answer to a claim can be lost with the connection after the claim was committed. A rescue is
-- complete when nothing is left.
-- Index: tenantqueue_job_slots, read once whole (it holds running jobs only).
SELECT j.id, j.claim_seq
FROM tenantqueue_job_hot j
WHERE j.state IN ('queued', 'running') AND j.worker_id = %(worker)s::bigint
