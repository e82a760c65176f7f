-- Look up one tenant queue. Index: tenantqueue_queue_unique.
SELECT id, retired, max_waiting
FROM tenantqueue_tenantqueue
WHERE tenant = %(tenant)s AND name = %(name)s
