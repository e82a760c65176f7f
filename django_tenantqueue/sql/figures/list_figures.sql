-- Sums of the figures since `since`, of one queue or of all (0), in periods of `seconds`.
-- `tasks`: one row for each task; otherwise the rows of all tasks together.
-- Index: primary key.
SELECT
    date_bin(make_interval(secs => %(seconds)s::float8), f.at, %(since)s::timestamptz) AS at,
    CASE WHEN %(tasks)s::boolean THEN f.name ELSE '' END AS name,
    sum(f.started)::bigint, sum(f.succeeded)::bigint, sum(f.failed)::bigint, sum(f.retried)::bigint,
    sum(f.cancelled)::bigint, sum(f.wait_seconds), sum(f.run_seconds),
    tenantqueue_sum_counts(f.waits), tenantqueue_sum_counts(f.runs)
FROM tenantqueue_figure f
WHERE f.queue_id = ANY (%(queue_ids)s::integer[]) AND f.at >= %(since)s::timestamptz AND f.error = ''
    AND CASE WHEN %(tasks)s::boolean OR f.queue_id <> 0 THEN f.name <> '' ELSE f.name = '' END
GROUP BY 1, 2
ORDER BY 1, 2
