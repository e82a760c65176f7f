-- Take over jobs that a dispatcher has sent, to run them in a process of its executor: each claim
-- moves to this worker, once. Left alone are jobs whose claim was lost or taken before, that were
-- cancelled, or whose queue or task is paused: the dispatcher gives those back.
-- Locks: the job rows. Indexes: primary keys. No predicate on `state`: see finish_jobs.sql.
UPDATE tenantqueue_job_hot AS job
SET state = 'running', started_at = clock_timestamp(), worker_id = %(worker)s::bigint
FROM tenantqueue_tenantqueue queue
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (%(ids)s::bigint[])
    AND job.claim_seq = (%(seqs)s::integer[])[array_position(%(ids)s::bigint[], job.id)]
    AND job.worker_id = (%(workers)s::bigint[])[array_position(%(ids)s::bigint[], job.id)]
    AND job.cancel_requested_at IS NULL
    -- a worker that was taken for dead runs nothing more
    AND EXISTS (SELECT FROM tenantqueue_worker w WHERE w.id = %(worker)s::bigint)
    AND queue.id = job.queue_id AND NOT queue.paused
    AND NOT EXISTS (
        SELECT FROM tenantqueue_taskcontrol c WHERE c.task = job.task AND c.paused
    )
RETURNING
-- include: claimed_columns
    0 AS nth_served, 0 AS used, 1 AS weight, 0 AS slots_left,
-- include: gates_of_job
    false AS is_controlled,
    date_part('epoch', clock_timestamp() - greatest(job.run_at, job.created_at)) AS waited,
    queue.tenant, queue.name
