-- Which of a worker's claims still stand, and what operators want of them.
-- A job that is missing from the answer was lost. Index: primary key.
SELECT job.id, job.claim_seq, job.cancel_requested_at IS NOT NULL AS cancel,
    q.paused OR EXISTS (
        SELECT FROM tenantqueue_taskcontrol c WHERE c.task = job.task AND c.paused
    ) AS paused
FROM tenantqueue_job_hot job
JOIN tenantqueue_tenantqueue q ON q.id = job.queue_id
WHERE job.id = ANY (%(ids)s::bigint[]) AND job.worker_id = %(worker)s::bigint
