-- Write the heartbeat of one worker process, with what it is doing; return whether an operator
-- asked it to drain, and whether any worker lacks tasks. `error` is NULL when nothing has gone
-- wrong since the last one. It waits for no disk, as sleep_worker.sql does not.
-- Indexes: primary key, tenantqueue_worker_unknown. No indexed column is written, so that the
-- update stays within its page.
UPDATE tenantqueue_worker
SET heartbeat_at = clock_timestamp(),
    jobs_running = %(jobs_running)s,
    rss_bytes = %(rss_bytes)s,
    claims_per_second = %(claims_per_second)s::float8,
    jobs_per_second = %(jobs_per_second)s::float8,
    clock_ahead_seconds = %(clock_ahead)s::float8,
    last_error = coalesce(%(error)s::text, last_error),
    last_error_at = CASE WHEN %(error)s::text IS NULL THEN last_error_at ELSE clock_timestamp() END
WHERE id = %(worker)s
RETURNING
    draining OR stopping, clock_timestamp(),
    EXISTS (SELECT FROM tenantqueue_worker w WHERE w.unknown_tasks IS NOT NULL),
    set_config('synchronous_commit', 'off', true)
