-- Look up tenant queues. Index: tenantqueue_queue_unique, once for each; LIMIT keeps the planner
-- from reading the whole table where it does not know how many are asked for.
SELECT wanted.tenant, wanted.name, queue.id, queue.retired
FROM unnest(%(tenants)s::text[], %(names)s::text[]) AS wanted (tenant, name)
CROSS JOIN LATERAL (
    SELECT id, retired
    FROM tenantqueue_tenantqueue
    WHERE tenant = wanted.tenant AND name = wanted.name
    LIMIT 1
) AS queue
