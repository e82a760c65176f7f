-- Record the use of a token, at most every `every_seconds`.
-- Locks: the token's row; skips a row that another transaction has locked.
-- Index: tenantqueue_apitoken_pkey.
UPDATE tenantqueue_apitoken AS t
SET last_used_at = statement_timestamp()
WHERE t.id = (
    SELECT a.id
    FROM tenantqueue_apitoken a
    WHERE a.id = %(id)s::bigint
        AND (
            a.last_used_at IS NULL
            OR a.last_used_at
                < statement_timestamp() - make_interval(secs => %(every_seconds)s::float8)
        )
    FOR NO KEY UPDATE SKIP LOCKED
)
