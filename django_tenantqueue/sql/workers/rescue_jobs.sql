-- Take back jobs of a worker process that died, to run again after `delays` seconds (0: at once).
-- Those that are not `counted` lose no attempt. `crashed`: counted ones may be what killed it.
-- The caller has locked them by lock_claims.sql. Index: primary key.
WITH dead AS MATERIALIZED (
    SELECT d.*
    FROM unnest(%(ids)s::bigint[], %(counted)s::boolean[], %(delays)s::float8[])
        AS d (id, counted, delay)
)
UPDATE tenantqueue_job_hot AS job
SET state = CASE WHEN dead.delay > 0 THEN 'scheduled' ELSE 'created' END,
    run_at = CASE
        WHEN dead.delay > 0 THEN clock_timestamp() + make_interval(secs => dead.delay)
        ELSE job.run_at
    END,
-- include: unclaimed
    attempt = CASE WHEN dead.counted THEN job.attempt ELSE job.attempt - 1 END,
    crashes = CASE
        WHEN dead.counted AND %(crashed)s::boolean THEN least(job.crashes, 32766) + 1
        ELSE job.crashes
    END,
    errors = CASE
        WHEN NOT dead.counted THEN job.errors
        ELSE tenantqueue_add_error(
            job.errors, %(error)s::jsonb || jsonb_build_object('attempt', job.attempt),
            %(max_errors)s::integer
        )
    END
FROM dead
WHERE job.id = dead.id AND job.worker_id = %(worker)s::bigint
    -- not redundant: see finish_jobs.sql
    AND job.id = ANY (%(ids)s::bigint[])
RETURNING job.id
