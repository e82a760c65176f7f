-- Let jobs run that wait for their time: they become ready, or come before their next gate. Locks: the job rows, SKIP LOCKED. Index: primary key.
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[])
        AND (j.state = 'scheduled' OR (j.state = 'held' AND j.run_at > clock_timestamp()))
    ORDER BY j.id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET run_at = clock_timestamp(),
    state = CASE
        WHEN job.state = 'scheduled' AND coalesce(job.user_key, job.exclusive_key) IS NULL
            THEN 'created'
        ELSE 'held'
    END,
    held_by = CASE
        WHEN job.held_by IS NOT NULL THEN job.held_by
        WHEN job.user_key IS NOT NULL THEN 'user'
        WHEN job.exclusive_key IS NOT NULL THEN 'exclusive'
    END
FROM target
WHERE job.id = target.id
RETURNING job.id, jsonb_build_array(
    job.monitor_id::text, job.session_key, job.user_key, job.exclusive_key, job.session_halt
)::text AS gates
