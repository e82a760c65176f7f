-- What operators want of the worker processes of one supervisor. It is also how the supervisor
-- tries its connection. Index: primary key.
SELECT id, draining, stopping
FROM tenantqueue_worker
WHERE id = ANY (%(ids)s::bigint[])
