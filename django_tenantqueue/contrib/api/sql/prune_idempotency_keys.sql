-- Delete up to `most` keys that are older than `keep_seconds`. Returns how many.
-- Locks: the rows, SKIP LOCKED. Index: tenantqueue_idempotency_due.
WITH old AS MATERIALIZED (
    SELECT k.id
    FROM tenantqueue_idempotencykey k
    WHERE k.created_at < statement_timestamp() - make_interval(secs => %(keep_seconds)s::float8)
    ORDER BY k.created_at
    LIMIT %(most)s::integer
    FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM tenantqueue_idempotencykey AS held
    WHERE held.id = ANY (ARRAY(SELECT o.id FROM old o))
    RETURNING held.id
)
SELECT count(*)
FROM deleted
