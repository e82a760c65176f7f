-- End this worker's own sleep, so that nobody notifies it while it is busy.
-- `is_alone`: see sleep_worker.sql.
UPDATE tenantqueue_worker
SET sleeping_until = NULL
WHERE id = %(worker)s AND sleeping_until IS NOT NULL
RETURNING
    id,
    set_config(
        'synchronous_commit',
        CASE WHEN %(is_alone)s::boolean THEN 'off' ELSE current_setting('synchronous_commit') END,
        true
    )
