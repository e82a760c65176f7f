-- Sums of the figures of tasks since `since`, in periods of `seconds`: of the `most` tasks that ran
-- longest. Index: primary key.
WITH longest AS MATERIALIZED (
    SELECT f.name
    FROM tenantqueue_figure f
    WHERE f.queue_id = 0 AND f.at >= %(since)s::timestamptz AND f.name <> '' AND f.error = ''
    GROUP BY f.name
    ORDER BY sum(f.run_seconds) DESC, f.name
    LIMIT %(most)s
)
SELECT
    date_bin(make_interval(secs => %(seconds)s::float8), f.at, %(since)s::timestamptz) AS at,
    f.name,
-- include: sum_figures
FROM tenantqueue_figure f
WHERE f.queue_id = 0 AND f.at >= %(since)s::timestamptz AND f.error = ''
    AND f.name = ANY (ARRAY(SELECT longest.name FROM longest))
GROUP BY 1, f.name
ORDER BY 1, f.name
