-- Sums of the figures of tasks since `since`, in periods of `seconds`: of the `most` tasks that ran
-- longest. Index: primary key.
WITH longest AS MATERIALIZED (
    SELECT f.task
    FROM tenantqueue_figure f
    WHERE f.queue_id = 0 AND f.at >= %(since)s::timestamptz AND f.task <> '' AND f.error = ''
    GROUP BY f.task
    ORDER BY sum(f.run_seconds) DESC, f.task
    LIMIT %(most)s
)
SELECT
    date_bin(make_interval(secs => %(seconds)s::float8), f.at, %(since)s::timestamptz) AS at,
    f.task,
-- include: sum_figures
FROM tenantqueue_figure f
WHERE f.queue_id = 0 AND f.at >= %(since)s::timestamptz AND f.error = ''
    AND f.task = ANY (ARRAY(SELECT longest.task FROM longest))
GROUP BY 1, f.task
ORDER BY 1, f.task
