-- Remove arguments, results, or messages and tracebacks of jobs of one month that have ended by
-- `latest`, and mark them as removed. The mark of secret arguments stays.
-- Locks: the history rows in id order, SKIP LOCKED. Index: the primary key of each history leaf
-- (one is read).
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_history j
    WHERE j.id = ANY (%(ids)s::bigint[])
        AND j.finished_at >= %(start)s::timestamptz AND j.finished_at < %(end)s::timestamptz
        AND j.finished_at <= %(latest)s::timestamptz
    ORDER BY j.id
    FOR UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_history AS job
SET (args, follow_ups, result, result_ref, errors) = (
    SELECT
        CASE
            WHEN NOT chosen.arguments THEN job.args
            WHEN job.args ? 'secret' THEN
                jsonb_build_object('__tenantqueue__', 'removed', 'secret', job.args -> 'secret')
            ELSE '{"__tenantqueue__": "removed"}'
        END,
        -- it can no longer be retried
        CASE
            WHEN chosen.arguments THEN tenantqueue_short_follow_ups(job.follow_ups)
            ELSE job.follow_ups
        END,
        CASE WHEN NOT chosen.result THEN job.result END,
        CASE WHEN chosen.result THEN '-' ELSE job.result_ref END,
        CASE
            WHEN NOT chosen.errors THEN job.errors
            WHEN jsonb_typeof(job.errors) = 'array' THEN (
                SELECT jsonb_agg(
                    CASE
                        WHEN jsonb_typeof(error.value) = 'object' THEN
                            error.value #- '{answer, message}' || '{"removed": true,
                                "traceback": "", "message": "(removed by a retention rule)"}'
                        ELSE '{"removed": true}'
                    END
                    ORDER BY error.ordinality
                )
                FROM jsonb_array_elements(job.errors) WITH ORDINALITY error
            )
        END
    FROM (
        SELECT
            (%(arguments)s::boolean[])[given.nth] AS arguments,
            (%(results)s::boolean[])[given.nth] AS result,
            (%(errors)s::boolean[])[given.nth] AS errors
        FROM (SELECT array_position(%(ids)s::bigint[], job.id) AS nth) given
    ) chosen
)
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (ARRAY(SELECT target.id FROM target))
    AND job.finished_at >= %(start)s::timestamptz AND job.finished_at < %(end)s::timestamptz
RETURNING job.id
