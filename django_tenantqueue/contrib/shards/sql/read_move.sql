-- Whether a tenant's jobs cannot be enqueued in this database now: it moves, or has moved away.
-- Locks nothing. Indexes: primary keys.
SELECT
    EXISTS (
        SELECT FROM tenantqueue_shardmove m WHERE m.tenant = %(tenant)s::text AND m.closed
    ) AS is_moving,
    EXISTS (
        SELECT
        FROM tenantqueue_shardpin p
        JOIN tenantqueue_shard s ON s.number <> p.shard
        WHERE p.tenant = %(tenant)s::text
    ) AS is_elsewhere
