-- Renew the heartbeats of worker processes whose locks their supervisor has taken again. Nothing
-- else shows find_dead_workers.sql that a lock was held between two looks. Locked rows are skipped.
-- Index: primary key.
UPDATE tenantqueue_worker
SET heartbeat_at = clock_timestamp()
WHERE id IN (
    SELECT w.id
    FROM tenantqueue_worker w
    WHERE w.id = ANY (%(ids)s::bigint[])
    FOR NO KEY UPDATE SKIP LOCKED
)
