-- Sums of the figures of some queues since `since`, by task, in periods of `seconds`.
-- Index: primary key.
SELECT
    date_bin(make_interval(secs => %(seconds)s::float8), f.at, %(since)s::timestamptz) AS at,
    f.task,
-- include: sum_figures
FROM tenantqueue_figure f
WHERE f.queue_id = ANY (%(queue_ids)s::integer[]) AND f.at >= %(since)s::timestamptz
    AND f.error = ''
GROUP BY 1, f.task
ORDER BY 1, f.task
