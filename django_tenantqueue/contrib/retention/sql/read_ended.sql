-- Read the jobs of some pages of one month, those that ended before `before`: what decides how long
-- they are kept, and what there is to remove. `start` and `end` limit the month, so that the others
-- are pruned. `queues`: only jobs of these queues, unless it is NULL. `whole`: measure the rows,
-- which reads values that are stored apart.
-- Locks: nothing. No index: a range of pages is read, in the order in which jobs have ended.
SELECT
    j.id, j.finished_at, j.queue_id, j.task, j.state,
    -- large values are not read: none of what takes the place of removed ones is large
    CASE
        WHEN pg_column_size(j.args) > 200 THEN true
        ELSE j.args <> '{"args": []}' AND NOT j.args ? '__tenantqueue__'
    END AS has_arguments,
    j.result IS NOT NULL OR coalesce(j.result_ref <> '-', false) AS has_result,
    j.errors IS NOT NULL AND NOT coalesce(j.errors -> -1 ? 'removed', false) AS has_errors,
    CASE WHEN %(whole)s::boolean THEN pg_column_size(j.*) ELSE 0 END AS row_bytes,
    pg_column_size(j.args) AS argument_bytes,
    coalesce(pg_column_size(j.result), 0) AS result_bytes,
    coalesce(pg_column_size(j.errors), 0) AS error_bytes
FROM tenantqueue_job_history j
WHERE j.ctid >= %(first)s::tid AND j.ctid < %(until)s::tid
    AND j.finished_at >= %(start)s::timestamptz AND j.finished_at < %(end)s::timestamptz
    AND j.finished_at < %(before)s::timestamptz
    AND (%(queues)s::integer[] IS NULL OR j.queue_id = ANY (%(queues)s::integer[]))
