-- Give claimed jobs back unstarted: the attempt is not counted, the claim number stays raised.
-- An error that says why is kept, unless the last one of the job is of the same class: a job that
-- is given back again and again says so once.
-- Fenced by (worker, claim_seq). Locks: the job rows, in the order of `ids`. Index: primary key.
WITH given AS MATERIALIZED (
    SELECT g.*
    FROM unnest(%(ids)s::bigint[], %(seqs)s::integer[], %(errors)s::text[])
        AS g (id, claim_seq, error)
)
UPDATE tenantqueue_job_hot AS job
SET state = CASE WHEN %(delay_seconds)s::float8 > 0 THEN 'scheduled' ELSE 'created' END,
    run_at = CASE
        WHEN %(delay_seconds)s::float8 > 0
            THEN clock_timestamp() + make_interval(secs => %(delay_seconds)s::float8)
        ELSE job.run_at
    END,
-- include: unclaimed
    attempt = job.attempt - 1,
    errors = CASE
        WHEN job.errors -> -1 ->> 'class' = given.error::jsonb ->> 'class' THEN job.errors
        ELSE tenantqueue_add_error(job.errors, given.error::jsonb, %(max_errors)s::integer)
    END
FROM given
WHERE job.id = given.id AND job.claim_seq = given.claim_seq AND job.worker_id = %(worker)s::bigint
    -- not redundant: see finish_jobs.sql
    AND job.id = ANY (%(ids)s::bigint[])
RETURNING job.id
