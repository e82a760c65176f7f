-- The tenant and the name of a queue. Index: primary key.
SELECT tenant, name
FROM tenantqueue_tenantqueue
WHERE id = %(queue_id)s
