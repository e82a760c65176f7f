-- Make tenant queues at their first use. Two that race: one inserts, the other does nothing. All
-- insert in the same order, so that none waits for one that waits for it.
INSERT INTO tenantqueue_tenantqueue (
    tenant, name, num_slots, weight, paused, retired, executor, created_at
)
SELECT tenant, name, num_slots, 1, false, false, executor, clock_timestamp()
FROM unnest(
    %(tenants)s::text[], %(names)s::text[], %(num_slots)s::integer[], %(executors)s::text[]
) AS new (tenant, name, num_slots, executor)
ORDER BY tenant, name
ON CONFLICT (tenant, name) DO NOTHING
