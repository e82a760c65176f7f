-- Change when waiting jobs may run. A time that has passed makes them ready, or brings them to
-- their gates. A job of a session returns to its place in the line, unless it has had an attempt
-- and keeps its turn. `run_at` NULL: now, and only jobs that wait for their time change.
-- Locks: the job rows, SKIP LOCKED. Index: primary key.
WITH target AS MATERIALIZED (
    SELECT
        j.id, j.run_at AS was,
        CASE
            WHEN j.held_by IN ('monitor', 'details') THEN j.held_by
            WHEN j.held_by = 'session' OR (j.session_key IS NOT NULL AND j.attempt = 0)
                THEN 'session'
            WHEN %(run_at)s::timestamptz > clock_timestamp() THEN NULL
            WHEN j.user_key IS NOT NULL THEN 'user'
            WHEN j.exclusive_key IS NOT NULL THEN 'exclusive'
        END AS line
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'created')
        AND (
            %(run_at)s::timestamptz IS NOT NULL OR j.state = 'scheduled'
            OR (j.state = 'held' AND j.run_at > clock_timestamp())
        )
    ORDER BY j.id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET run_at = coalesce(%(run_at)s::timestamptz, clock_timestamp()),
    state = CASE
        WHEN target.line IS NOT NULL THEN 'held'
        WHEN %(run_at)s::timestamptz > clock_timestamp() THEN 'scheduled'
        ELSE 'created'
    END,
    held_by = target.line
FROM target
WHERE job.id = target.id
RETURNING job.id, jsonb_build_array(
    job.monitor_id::text, job.session_key, job.user_key, job.exclusive_key, job.session_halt
)::text AS gates, target.was
