-- Remove arguments, results, or messages and tracebacks of jobs of one month that have ended by
-- `latest`. What takes their place says that they were removed. The mark of secret arguments stays.
-- Locks: the history rows in id order, SKIP LOCKED. Index: the primary key of each history leaf
-- (one is read).
WITH target AS MATERIALIZED (
    SELECT j.id, chosen.arguments, chosen.result, chosen.errors
    FROM unnest(
        %(ids)s::bigint[], %(arguments)s::boolean[], %(results)s::boolean[], %(errors)s::boolean[]
    ) AS chosen (id, arguments, result, errors)
    JOIN tenantqueue_job_history j ON j.id = chosen.id
    WHERE j.id = ANY (%(ids)s::bigint[])
        AND j.finished_at >= %(start)s::timestamptz AND j.finished_at < %(end)s::timestamptz
        AND j.finished_at <= %(latest)s::timestamptz
    ORDER BY j.id
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE tenantqueue_job_history AS job
SET args = CASE
        WHEN NOT target.arguments THEN job.args
        WHEN job.args ? 'secret' THEN
            jsonb_build_object('__tenantqueue__', 'removed', 'secret', job.args -> 'secret')
        ELSE '{"__tenantqueue__": "removed"}'
    END,
    -- it is not retried any more
    follow_ups = CASE
        WHEN target.arguments THEN tenantqueue_short_follow_ups(job.follow_ups)
        ELSE job.follow_ups
    END,
    result = CASE WHEN NOT target.result THEN job.result END,
    result_ref = CASE WHEN target.result THEN '-' ELSE job.result_ref END,
    errors = CASE
        WHEN NOT target.errors THEN job.errors
        WHEN jsonb_typeof(job.errors) = 'array' THEN (
            SELECT jsonb_agg(
                CASE
                    WHEN jsonb_typeof(error.value) = 'object' THEN
                        error.value #- '{answer, message}' || '{"removed": true,
                            "traceback": "", "message": "(removed by a rule of retention)"}'
                    ELSE '{"removed": true}'
                END
                ORDER BY error.ordinality
            )
            FROM jsonb_array_elements(job.errors) WITH ORDINALITY error
        )
    END
FROM target
WHERE job.id = target.id
    AND job.finished_at >= %(start)s::timestamptz AND job.finished_at < %(end)s::timestamptz
    -- not redundant: see finish_jobs.sql
    AND job.id = ANY (%(ids)s::bigint[])
RETURNING job.id
