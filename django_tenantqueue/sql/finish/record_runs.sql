-- Write what is known of runs that still go on: the true start, progress, statistics.
-- `ages` are seconds since the start. Fenced by (worker, claim_seq). Index: primary key.
-- Locks: the job rows, SKIP LOCKED: the worker's claims and heartbeats come behind this statement,
-- and must not wait for a row that an operator's open transaction holds.
WITH free AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[])
    FOR NO KEY UPDATE SKIP LOCKED
),
run AS MATERIALIZED (
    SELECT r.*
    FROM unnest(
        %(ids)s::bigint[], %(seqs)s::integer[], %(ages)s::float8[], %(extras)s::text[]
    ) AS r (id, claim_seq, age, extra)
    JOIN free ON free.id = r.id
)
UPDATE tenantqueue_job_hot AS job
SET state = 'running',
    started_at = coalesce(job.started_at, clock_timestamp() - make_interval(secs => run.age)),
    progress_done = coalesce((run.extra::jsonb ->> 'done')::float8, job.progress_done),
    progress_total = coalesce((run.extra::jsonb ->> 'total')::float8, job.progress_total),
    progress_message = coalesce(run.extra::jsonb ->> 'message', job.progress_message),
    stats = coalesce(run.extra::jsonb -> 'stats', job.stats)
FROM run
WHERE job.id = run.id AND job.claim_seq = run.claim_seq AND job.worker_id = %(worker)s::bigint
    -- not redundant: see finish_jobs.sql
    AND job.id = ANY (%(ids)s::bigint[])
RETURNING job.id
