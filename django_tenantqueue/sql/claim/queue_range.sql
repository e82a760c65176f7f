-- The lowest and the highest id of a queue: a new worker process begins its turns somewhere between.
-- Index: primary key, read from both its ends.
SELECT coalesce(min(id), 0), coalesce(max(id), 0)
FROM tenantqueue_tenantqueue
