-- Reads the number of this database, and the pins unless the caller has this version of them. Locks
-- nothing. Index: none, all rows of both tables are read.
SELECT shard.number, shard.version, shard.has_moves, pin.tenant, pin.shard
FROM tenantqueue_shard AS shard
LEFT JOIN tenantqueue_shardpin AS pin ON shard.version <> %(known_version)s::bigint
