-- Make a tenant queue at its first use. Two that race: one inserts, the other does nothing.
INSERT INTO tenantqueue_tenantqueue (
    tenant, name, num_slots, weight, paused, retired, executor, created_at
)
VALUES (%(tenant)s, %(name)s, %(num_slots)s, 1, false, false, %(executor)s, clock_timestamp())
ON CONFLICT (tenant, name) DO NOTHING
