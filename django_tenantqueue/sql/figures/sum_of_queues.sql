-- Sums of the figures of some queues since `since`, one row for each queue. Index: primary key.
SELECT
    f.queue_id, sum(f.started)::bigint, sum(f.succeeded)::bigint, sum(f.failed)::bigint,
    sum(f.retried)::bigint, sum(f.cancelled)::bigint, sum(f.wait_seconds), sum(f.run_seconds)
FROM tenantqueue_figure f
WHERE f.queue_id = ANY (%(queue_ids)s::integer[]) AND f.at >= %(since)s::timestamptz
    AND f.error = ''
GROUP BY f.queue_id
