-- Delete up to `most` keys that have expired. They no longer block.
-- Locks: the keys' rows, SKIP LOCKED. Indexes: tenantqueue_uniquekey_due,
-- tenantqueue_uniquekey_pkey.
WITH over AS MATERIALIZED (
    SELECT k.key
    FROM tenantqueue_uniquekey k
    WHERE k.expires_at <= statement_timestamp()
    ORDER BY k.expires_at
    LIMIT %(most)s::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM tenantqueue_uniquekey AS held
WHERE held.key = ANY (ARRAY(SELECT o.key FROM over o))
RETURNING held.key
