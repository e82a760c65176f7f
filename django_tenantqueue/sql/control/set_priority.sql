-- Change the priority of jobs that wait. Locks: the job rows, SKIP LOCKED. Index: primary key.
WITH target AS MATERIALIZED (
    SELECT j.id, j.priority AS was
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'ready')
    ORDER BY j.id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET priority = %(priority)s, lane = %(lane)s
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (ARRAY(SELECT t.id FROM target t))
RETURNING job.id,
-- include: gates_text
    , (ARRAY(SELECT t.was FROM target t))[
        width_bucket(job.id, ARRAY(SELECT t.id FROM target t))
    ] AS was
