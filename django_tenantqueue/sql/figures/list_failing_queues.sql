-- Queues with runs that failed since `since`: ended in error, or followed by another attempt. At
-- most `rows` figures are read, the newest first; `capped` says that there may be more.
-- Index: tenantqueue_figure_errors.
WITH newest AS MATERIALIZED (
    SELECT f.queue_id, f.failed, f.retried
    FROM tenantqueue_figure f
    WHERE f.at >= %(since)s::timestamptz AND f.error <> ''
    ORDER BY f.at DESC
    LIMIT %(rows)s
)
SELECT
    n.queue_id, sum(n.failed)::bigint AS failed, sum(n.retried)::bigint AS retried,
    (SELECT count(*) FROM newest) >= %(rows)s AS capped
FROM newest n
WHERE n.queue_id <> 0
GROUP BY n.queue_id
