-- Sums of the figures of one task in some queues since `since`, one row for each time when a
-- minute, an hour or a day begins. Queue 0 is all queues. Index: primary key.
SELECT
    f.at, f.task,
-- include: sum_figures
FROM tenantqueue_figure f
WHERE f.queue_id = ANY (%(queue_ids)s::integer[]) AND f.at >= %(since)s::timestamptz
    AND f.task = %(task)s::text AND f.error = ''
GROUP BY f.at, f.task
ORDER BY f.at
