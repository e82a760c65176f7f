-- Put failed jobs back for another attempt after `delays` seconds, with their error kept.
-- Fenced by (worker, claim_seq). A job that shall be cancelled is left: its worker ends it.
-- Locks: the job rows, in the order of `ids`. Index: primary key.
UPDATE tenantqueue_job_hot AS job
SET
-- include: unclaimed
    (state, run_at, stats, errors) = (
        SELECT
            CASE WHEN failed.delay > 0 THEN 'scheduled' ELSE 'ready' END,
            clock_timestamp() + make_interval(secs => failed.delay),
            coalesce(failed.extra -> 'stats', job.stats),
            tenantqueue_add_error(job.errors, failed.extra -> 'error', %(max_errors)s::integer)
        FROM (
            SELECT
                (%(delays)s::float8[])[given.nth] AS delay,
                (%(extras)s::text[])[given.nth]::jsonb AS extra
            FROM (SELECT array_position(%(ids)s::bigint[], job.id) AS nth) given
        ) failed
    )
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (%(ids)s::bigint[]) AND job.worker_id = %(worker)s::bigint
    AND job.claim_seq = (%(seqs)s::integer[])[array_position(%(ids)s::bigint[], job.id)]
    AND job.cancel_requested_at IS NULL
RETURNING job.id
