-- Queues with runs that failed since `since`: ended in error, or followed by another attempt. At
-- most `visits` queues that have failures are looked at, in the order of their ids; `capped` says
-- that there may be more. Index: tenantqueue_figure_errors.
WITH RECURSIVE visit AS (
    (
        SELECT f.queue_id, 1 AS step
        FROM tenantqueue_figure f
        WHERE f.queue_id > 0 AND f.error <> ''
        ORDER BY f.queue_id
        LIMIT 1
    )
    UNION ALL
    SELECT next.queue_id, visit.step + 1
    FROM visit
    CROSS JOIN LATERAL (
        SELECT f.queue_id
        FROM tenantqueue_figure f
        WHERE f.queue_id > visit.queue_id AND f.error <> ''
        ORDER BY f.queue_id
        LIMIT 1
    ) next
    WHERE visit.step < %(visits)s::integer
)
SELECT
    visit.queue_id, sum(found.failed)::bigint AS failed, sum(found.retried)::bigint AS retried,
    (SELECT count(*) FROM visit) >= %(visits)s AS capped
FROM visit
CROSS JOIN LATERAL (
    SELECT f.failed, f.retried
    FROM tenantqueue_figure f
    WHERE f.queue_id = visit.queue_id AND f.at >= %(since)s::timestamptz AND f.error <> ''
) found
GROUP BY visit.queue_id
