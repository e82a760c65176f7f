-- A worker process that its supervisor registered says that it runs. Index: primary key.
UPDATE tenantqueue_worker
SET pid = %(pid)s, heartbeat_at = clock_timestamp()
WHERE id = %(worker)s
RETURNING id
