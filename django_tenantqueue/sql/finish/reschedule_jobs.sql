-- Put failed jobs back for another attempt after `delays` seconds, with their error kept.
-- Fenced by (worker, claim_seq). Locks: the job rows, in the order of `ids`. Index: primary key.
WITH failed AS MATERIALIZED (
    SELECT f.*
    FROM unnest(
        %(ids)s::bigint[], %(seqs)s::integer[], %(delays)s::float8[], %(extras)s::text[]
    ) AS f (id, claim_seq, delay, extra)
)
UPDATE tenantqueue_job_hot AS job
SET state = CASE WHEN failed.delay > 0 THEN 'scheduled' ELSE 'created' END,
    run_at = clock_timestamp() + make_interval(secs => failed.delay),
-- include: unclaimed
    stats = coalesce(failed.extra::jsonb -> 'stats', job.stats),
    errors = tenantqueue_add_error(
        job.errors, failed.extra::jsonb -> 'error', %(max_errors)s::integer
    )
FROM failed
WHERE job.id = failed.id AND job.claim_seq = failed.claim_seq AND job.worker_id = %(worker)s::bigint
    -- not redundant: see finish_jobs.sql
    AND job.id = ANY (%(ids)s::bigint[])
RETURNING job.id
