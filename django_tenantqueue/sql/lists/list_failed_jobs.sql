-- Jobs of a task that ended in error since `since` with an error of one class, the newest first:
-- those that ended before `before`, or then and with a lower id than `before_id`; at most `most`.
-- Index: tenantqueue_history_errors of each leaf, merged. Its order is asked for.
SELECT j.id, j.finished_at, j.queue_id
FROM tenantqueue_job_history j
WHERE j.state = 'error' AND left(j.task, 300) = %(task)s::text
    AND tenantqueue_error_class(j.errors) = %(error)s::text
    AND j.finished_at >= %(since)s::timestamptz
    -- not redundant: leaves are left out by it
    AND j.finished_at <= %(before)s::timestamptz
    AND (j.finished_at, j.id) < (%(before)s::timestamptz, %(before_id)s::bigint)
ORDER BY j.finished_at DESC, j.id DESC
LIMIT %(most)s
