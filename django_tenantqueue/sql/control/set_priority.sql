-- Change the priority of jobs that wait. Locks: the job rows, SKIP LOCKED. Index: primary key.
WITH target AS MATERIALIZED (
    SELECT j.id, j.priority AS was
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'created')
    ORDER BY j.id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET priority = %(priority)s, lane = %(lane)s
FROM target
WHERE job.id = target.id
RETURNING job.id, jsonb_build_array(
    job.monitor_id::text, job.session_key, job.user_key, job.exclusive_key, job.session_halt
)::text AS gates, target.was
