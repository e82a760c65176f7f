-- Sums of the figures of all jobs since `since`, in periods of `seconds`. Index: primary key.
SELECT
    date_bin(make_interval(secs => %(seconds)s::float8), f.at, %(since)s::timestamptz) AS at, '',
-- include: sum_figures
FROM tenantqueue_figure f
WHERE f.queue_id = 0 AND f.at >= %(since)s::timestamptz AND f.task = '' AND f.error = ''
GROUP BY 1
ORDER BY 1
