-- For each queue that lock_queues.sql has locked: the `queued_at` of the oldest job that holds a
-- slot, but at least `margin_seconds` before the clock, and the clock, `as_of` (microseconds). It
-- runs in the claim's transaction, after the claim. So it sees every earlier claim, and jobs of
-- later claims are queued later.
-- A queue without a limit is left out.
-- Index: tenantqueue_job_slots, up to its first living entry.
-- Reasoning: docs/explanation/claim.md.
WITH
-- include: taken_since
SELECT
    handed.queue_id,
    (
        1000000 * extract(
            epoch FROM least(
                taken.queued_at,
                clock_timestamp() - make_interval(secs => %(margin_seconds)s::float8)
            )
        )
    )::bigint AS queued_at,
    (1000000 * extract(epoch FROM clock_timestamp()))::bigint AS as_of
FROM (
    SELECT DISTINCT unnest(current_setting('tenantqueue.queues')::integer[]) AS queue_id
) handed
LEFT JOIN since ON since.queue_id = handed.queue_id
LEFT JOIN LATERAL (
    SELECT j.queued_at
    FROM tenantqueue_job_hot j
    WHERE j.queue_id = handed.queue_id AND j.state IN ('queued', 'running')
        AND j.queued_at >= coalesce(since.taken_at, '-infinity')
    ORDER BY j.queue_id, j.queued_at
    LIMIT 1
) taken ON true
WHERE handed.queue_id <> ALL (current_setting('tenantqueue.unlimited')::integer[])
