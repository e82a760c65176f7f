-- Give claimed jobs back unstarted: the attempt is not counted, the claim number stays raised.
-- An error that says why is kept, unless the last one of the job is of the same class: a job that
-- is given back again and again says so once.
-- Fenced by (worker, claim_seq). A job that shall be cancelled is left: its worker ends it, else
-- the request would stay unread until the next claim. So is one whose last error and the new one
-- are of the class `ending_class`, if `most_seconds` have passed since the last one. An error of
-- attempt 0 has ended the job, before a retry.
-- Locks: the job rows, in the order of `ids`. Index: primary key.
UPDATE tenantqueue_job_hot AS job
SET state = CASE WHEN %(delay_seconds)s::float8 > 0 THEN 'scheduled' ELSE 'ready' END,
    run_at = CASE
        WHEN %(delay_seconds)s::float8 > 0
            THEN clock_timestamp() + make_interval(secs => %(delay_seconds)s::float8)
        ELSE job.run_at
    END,
-- include: unclaimed
    attempt = job.attempt - 1,
    errors = (
        SELECT CASE
            WHEN job.errors -> -1 ->> 'class' = given.error ->> 'class'
                AND job.errors -> -1 ->> 'attempt' IS DISTINCT FROM '0' THEN job.errors
            ELSE tenantqueue_add_error(job.errors, given.error, %(max_errors)s::integer)
        END
        FROM (
            SELECT (%(errors)s::text[])[array_position(%(ids)s::bigint[], job.id)]::jsonb AS error
        ) given
    )
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (%(ids)s::bigint[]) AND job.worker_id = %(worker)s::bigint
    AND job.claim_seq = (%(seqs)s::integer[])[array_position(%(ids)s::bigint[], job.id)]
    AND job.cancel_requested_at IS NULL
    AND NOT coalesce(
        job.errors -> -1 ->> 'class' = %(ending_class)s::text
        AND job.errors -> -1 ->> 'attempt' IS DISTINCT FROM '0'
        AND (%(errors)s::text[])[array_position(%(ids)s::bigint[], job.id)]::jsonb ->> 'class'
            = %(ending_class)s::text
        AND (job.errors -> -1 ->> 'at')::timestamptz
            < clock_timestamp() - make_interval(secs => %(most_seconds)s::float8),
        false
    )
RETURNING job.id
