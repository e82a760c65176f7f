-- Keep jobs that wait from starting before the commit of those who rely on them: what these have
-- written is then seen by the run. Returned are those that were locked; the others start right now, are
-- changed by somebody, or do not wait any more.
-- A job that has been due for `patience_seconds` is locked by one transaction only: many that follow
-- each other would keep it from starting for ever.
-- Locks: the job rows in id order, SHARE or NO KEY UPDATE, SKIP LOCKED: claims pass them over.
-- Index: primary key.
WITH young AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'created')
        AND j.run_at > statement_timestamp() - make_interval(secs => %(patience_seconds)s::float8)
    ORDER BY j.id
    FOR SHARE SKIP LOCKED
), overdue AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'created')
        AND j.run_at <= statement_timestamp() - make_interval(secs => %(patience_seconds)s::float8)
    ORDER BY j.id
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT id FROM young
UNION ALL
SELECT id FROM overdue
