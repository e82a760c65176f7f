-- Tasks with at least `least` failed runs since `since` that are at least this `share` of all ended
-- runs; the `most` with most failures. Runs that another attempt follows count as failed, too.
-- Index: primary key.
SELECT f.task, sum(f.failed + f.retried)::bigint AS failures, sum(
    f.succeeded + f.failed + f.retried + f.cancelled
)::bigint AS ended
FROM tenantqueue_figure f
WHERE f.queue_id = 0 AND f.at >= %(since)s::timestamptz AND f.task <> '' AND f.error = ''
GROUP BY f.task
HAVING sum(f.failed + f.retried) >= %(least)s
    AND sum(f.failed + f.retried) >= %(share)s::float8 * sum(
        f.succeeded + f.failed + f.retried + f.cancelled
    )
ORDER BY failures DESC, f.task
LIMIT %(most)s
