-- Make a tenant queue at its first use. Two that race: one inserts, the other does nothing.
INSERT INTO tenantqueue_tenantqueue (
    tenant, name, num_slots, weight, paused, retired, created_at
)
VALUES (%(tenant)s, %(name)s, %(num_slots)s, 1, false, false, clock_timestamp())
ON CONFLICT (tenant, name) DO NOTHING
