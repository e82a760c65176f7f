-- Delete jobs of one month that have ended by `latest`. Others of `ids` have come back since they
-- were read. Jobs of a monitor that has not ended are left: it counts them.
-- Locks: the history rows in id order, SKIP LOCKED. Indexes: the primary key of each history leaf
-- (one is read), that of monitors, and the primary key of unfinished jobs.
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_history j
    WHERE j.id = ANY (%(ids)s::bigint[])
        AND j.finished_at >= %(start)s::timestamptz AND j.finished_at < %(end)s::timestamptz
        AND j.finished_at <= %(latest)s::timestamptz
        AND NOT EXISTS (
            SELECT
            FROM tenantqueue_concurrentjobmonitor m
            WHERE m.id = j.monitor_id
                AND EXISTS (
                    SELECT
                    FROM tenantqueue_job_hot anchor
                    WHERE anchor.id = m.anchor_id
                    OFFSET 0
                )
            OFFSET 0  -- by index for each job: a join may read all unfinished jobs
        )
    ORDER BY j.id
    FOR UPDATE OF j SKIP LOCKED
)
DELETE FROM tenantqueue_job_history AS job
WHERE job.id = ANY (ARRAY(SELECT target.id FROM target))
    AND job.finished_at >= %(start)s::timestamptz AND job.finished_at < %(end)s::timestamptz
RETURNING job.id
