-- End this worker's own sleep, so that no enqueuer notifies it while it is busy.
-- Commits as sleep_worker.sql does.
UPDATE tenantqueue_worker
SET sleeping_until = NULL
WHERE id = %(worker)s AND sleeping_until IS NOT NULL
RETURNING id, set_config('synchronous_commit', 'off', true)
