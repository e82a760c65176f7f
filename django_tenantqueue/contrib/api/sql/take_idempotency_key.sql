-- Take a key for a request, unless a request younger than `keep_seconds` has it: then no row is
-- returned. Waits for another transaction that takes the key.
-- Locks: the key's row. Index: tenantqueue_idempotencykey_unique.
INSERT INTO tenantqueue_idempotencykey AS held (token_id, key, tenant, digest, created_at)
VALUES (
    %(token_id)s::bigint,
    %(key)s::text,
    %(tenant)s::text,
    %(digest)s::text,
    statement_timestamp()
)
ON CONFLICT (token_id, key) DO UPDATE
SET tenant = EXCLUDED.tenant,
    digest = EXCLUDED.digest,
    status = NULL,
    answer = NULL,
    created_at = EXCLUDED.created_at
WHERE held.created_at < statement_timestamp() - make_interval(secs => %(keep_seconds)s::float8)
RETURNING held.id
