-- Write the state of running jobs: the true start, progress, statistics.
-- `ages` are seconds since the start. Fenced by (worker, claim_seq). Index: primary key.
-- Locks: the job rows, SKIP LOCKED: the worker's claims and heartbeats come behind this statement,
-- and must not wait for a row that an operator's open transaction holds.
WITH free AS MATERIALIZED (
    -- by arrays: see finish_jobs.sql
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.worker_id = %(worker)s::bigint
        AND j.claim_seq = (%(seqs)s::integer[])[array_position(%(ids)s::bigint[], j.id)]
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET (state, started_at, progress_done, progress_total, progress_message, stats) = (
    SELECT
        'running',
        coalesce(job.started_at, clock_timestamp() - make_interval(secs => run.age)),
        coalesce((run.extra ->> 'done')::float8, job.progress_done),
        coalesce((run.extra ->> 'total')::float8, job.progress_total),
        coalesce(run.extra ->> 'message', job.progress_message),
        coalesce(run.extra -> 'stats', job.stats)
    FROM (
        SELECT
            (%(ages)s::float8[])[given.nth] AS age,
            (%(extras)s::text[])[given.nth]::jsonb AS extra
        FROM (SELECT array_position(%(ids)s::bigint[], job.id) AS nth) given
    ) run
)
WHERE job.id = ANY (ARRAY(SELECT free.id FROM free))
RETURNING job.id
