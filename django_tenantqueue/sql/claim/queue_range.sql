-- The lowest and the highest id of a queue. A new worker process begins its turns at a random id in
-- this range. Index: primary key, read from both ends.
SELECT coalesce(min(id), 0), coalesce(max(id), 0)
FROM tenantqueue_tenantqueue
