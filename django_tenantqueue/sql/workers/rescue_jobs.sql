-- Take back jobs of a worker process that died, to run again after `delays` seconds (0: at once).
-- Those that are not `counted` lose no attempt. `crashed`: counted ones may be what killed it.
-- The caller has locked them by lock_claims.sql. Index: primary key.
UPDATE tenantqueue_job_hot AS job
SET
-- include: unclaimed
    (state, run_at, attempt, crashes, errors) = (
        SELECT
            CASE WHEN dead.delay > 0 THEN 'scheduled' ELSE 'ready' END,
            CASE
                WHEN dead.delay > 0 THEN clock_timestamp() + make_interval(secs => dead.delay)
                ELSE job.run_at
            END,
            CASE WHEN dead.counted THEN job.attempt ELSE job.attempt - 1 END,
            CASE
                WHEN dead.counted AND %(crashed)s::boolean THEN least(job.crashes, 32766) + 1
                ELSE job.crashes
            END,
            CASE
                WHEN NOT dead.counted THEN job.errors
                ELSE tenantqueue_add_error(
                    job.errors, %(error)s::jsonb || jsonb_build_object('attempt', job.attempt),
                    %(max_errors)s::integer
                )
            END
        FROM (
            SELECT
                (%(counted)s::boolean[])[given.nth] AS counted,
                (%(delays)s::float8[])[given.nth] AS delay
            FROM (SELECT array_position(%(ids)s::bigint[], job.id) AS nth) given
        ) dead
    )
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (%(ids)s::bigint[]) AND job.worker_id = %(worker)s::bigint
RETURNING job.id
