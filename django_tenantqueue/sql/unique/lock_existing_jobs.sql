-- Keep jobs that wait from starting before the commit of those who rely on them: what these have
-- written is then seen by the run. Returned are those that were locked; the others start right now, are
-- being changed, or do not wait any more.
-- A job that has been due for `patience_seconds` is locked by one transaction only: many that follow
-- each other would keep it from starting for ever.
-- `ids` in ascending order, as JSON: the length of an array would be part of the plan, which was then
-- made anew for each call and took ten times as long as what it did.
-- Locks: the job rows in id order, SHARE or NO KEY UPDATE, SKIP LOCKED: claims pass them over.
-- Index: primary key.
WITH given AS MATERIALIZED (
    SELECT element::bigint AS id
    FROM jsonb_array_elements_text(%(ids)s::jsonb) element
), young AS MATERIALIZED (
    SELECT existing_job.id
    FROM given
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = given.id AND j.state IN ('scheduled', 'held', 'created')
            AND j.run_at > statement_timestamp() - make_interval(secs => %(patience_seconds)s::float8)
        FOR SHARE SKIP LOCKED
    ) existing_job
), overdue AS MATERIALIZED (
    SELECT existing_job.id
    FROM given
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = given.id AND j.state IN ('scheduled', 'held', 'created')
            AND j.run_at <= statement_timestamp() - make_interval(secs => %(patience_seconds)s::float8)
        FOR NO KEY UPDATE SKIP LOCKED
    ) existing_job
)
SELECT id FROM young
UNION ALL
SELECT id FROM overdue
