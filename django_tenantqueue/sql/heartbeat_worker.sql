-- Sign of life of one worker process; tells it whether an operator wants it to drain.
UPDATE tenantqueue_worker
SET heartbeat_at = clock_timestamp()
WHERE id = %(worker)s
RETURNING draining
