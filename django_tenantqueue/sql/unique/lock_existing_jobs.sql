-- Keep waiting jobs from starting before the caller's commit: their runs then see what the caller
-- has written. Returns those that were locked. The others start right now, are being changed, or
-- no longer wait.
-- A job that has been due for `patience_seconds` is locked by one transaction only: many that
-- follow each other would keep it from starting for ever.
-- `ids` in ascending order, as JSON: the plan would depend on the length of an array.
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
        WHERE j.id = given.id AND j.state IN ('scheduled', 'held', 'ready')
            AND j.run_at > statement_timestamp()
                - make_interval(secs => %(patience_seconds)s::float8)
        FOR SHARE SKIP LOCKED
    ) existing_job
), overdue AS MATERIALIZED (
    SELECT existing_job.id
    FROM given
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = given.id AND j.state IN ('scheduled', 'held', 'ready')
            AND j.run_at <= statement_timestamp()
                - make_interval(secs => %(patience_seconds)s::float8)
        FOR NO KEY UPDATE SKIP LOCKED
    ) existing_job
)
SELECT id FROM young
UNION ALL
SELECT id FROM overdue
