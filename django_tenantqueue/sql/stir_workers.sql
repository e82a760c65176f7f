-- End the announced sleeps of some workers and notify each, whether there is work for it or not: an
-- operator has an order for it. Index: primary key.
UPDATE tenantqueue_worker
SET sleeping_until = NULL
WHERE id = ANY (%(ids)s::bigint[]) AND sleeping_until IS NOT NULL
RETURNING pg_notify('tenantqueue_' || id, '')
