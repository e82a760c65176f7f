-- Failures since `since` by task and class of error, the most frequent first, at most `most`.
-- The rows of all queues are read, so that each failure counts once.
-- Index: tenantqueue_figure_errors.
SELECT
    f.name, f.error, sum(f.failed)::bigint AS failed, sum(f.retried)::bigint AS retried,
    min(f.at) AS first_at, max(f.at) AS last_at, max(f.last_job_id) AS last_job_id,
    count(DISTINCT f.queue_id) AS queues
FROM tenantqueue_figure f
WHERE f.at >= %(since)s::timestamptz AND f.error <> ''
GROUP BY f.name, f.error
ORDER BY sum(f.failed + f.retried) DESC, f.name, f.error
LIMIT %(most)s
