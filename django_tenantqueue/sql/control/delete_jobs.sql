-- Delete finished jobs from the history. Jobs of a monitor that still has its row are left: the
-- monitor counts them.
-- Locks: the history rows in id order, SKIP LOCKED. Indexes: the primary key of each history leaf,
-- that of monitors.
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_history j
    WHERE j.id = ANY (%(ids)s::bigint[])
        AND NOT EXISTS (
            SELECT
            FROM tenantqueue_concurrentjobmonitor m
            WHERE m.id = j.monitor_id
        )
    ORDER BY j.id
    FOR UPDATE OF j SKIP LOCKED
)
DELETE FROM tenantqueue_job_history AS job
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (ARRAY(SELECT target.id FROM target))
RETURNING job.id, job.state
