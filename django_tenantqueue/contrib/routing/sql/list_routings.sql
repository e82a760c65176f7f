-- Read all routings. Each process that enqueues does so at most once a second.
-- Locks: nothing. No index: the whole table, which has a row for each routing.
SELECT tenant, pattern, queue
FROM tenantqueue_routing
