-- Whose queue it is. Index: primary key.
SELECT tenant, name
FROM tenantqueue_tenantqueue
WHERE id = %(queue_id)s
