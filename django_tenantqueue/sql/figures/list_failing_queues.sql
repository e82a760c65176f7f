-- Queues with runs that failed since `since`: ended in error, or followed by another attempt. At
-- most `rows` figures are read, the newest first. Index: tenantqueue_figure_errors.
SELECT one.queue_id, sum(one.failed)::bigint AS failed, sum(one.retried)::bigint AS retried
FROM (
    SELECT f.queue_id, f.failed, f.retried
    FROM tenantqueue_figure f
    WHERE f.at >= %(since)s::timestamptz AND f.error <> ''
    ORDER BY f.at DESC
    LIMIT %(rows)s
) one
WHERE one.queue_id <> 0
GROUP BY one.queue_id
