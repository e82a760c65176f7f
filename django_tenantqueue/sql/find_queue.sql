-- Look up one tenant queue. Index: tenantqueue_queue_unique.
SELECT id, retired
FROM tenantqueue_tenantqueue
WHERE tenant = %(tenant)s AND name = %(name)s
