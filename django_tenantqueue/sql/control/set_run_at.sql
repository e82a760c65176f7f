-- Change when waiting jobs may run. A time that has passed makes them ready, or brings them to
-- their gates. A job of a session returns to its place in the line, unless it has had an attempt
-- and keeps its turn. `run_at` NULL: now, and only jobs that wait for their time change.
-- Locks: the job rows, SKIP LOCKED. Index: primary key.
WITH target AS MATERIALIZED (
    SELECT j.id, j.run_at AS was
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'ready')
        AND (
            %(run_at)s::timestamptz IS NOT NULL OR j.state = 'scheduled'
            OR (j.state = 'held' AND j.run_at > clock_timestamp())
        )
    ORDER BY j.id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET run_at = coalesce(%(run_at)s::timestamptz, clock_timestamp()),
    (state, held_by) = (
        SELECT
            CASE
                WHEN next.line IS NOT NULL THEN 'held'
                WHEN %(run_at)s::timestamptz > clock_timestamp() THEN 'scheduled'
                ELSE 'ready'
            END,
            next.line
        FROM (
            SELECT CASE
                WHEN job.held_by IN ('monitor', 'details') THEN job.held_by
                WHEN job.held_by = 'session' OR (job.session_key IS NOT NULL AND job.attempt = 0)
                    THEN 'session'
                WHEN %(run_at)s::timestamptz > clock_timestamp() THEN NULL
                WHEN job.limit_user IS NOT NULL THEN 'limit_user'
                WHEN job.exclusive_key IS NOT NULL THEN 'exclusive'
            END AS line
        ) next
    )
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (ARRAY(SELECT t.id FROM target t))
RETURNING job.id,
-- include: gates_text
    , (ARRAY(SELECT t.was FROM target t))[
        width_bucket(job.id, ARRAY(SELECT t.id FROM target t))
    ] AS was
