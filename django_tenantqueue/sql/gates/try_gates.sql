-- Lock those of these gates that no other session holds, until the commit. Returns their keys and
-- names them to release_monitors.sql of the same transaction.
-- Locks: advisory, as lock_gates.sql, but without waiting.
SELECT locked.keys
FROM (
    SELECT coalesce(array_agg(given.key), '{}') AS keys
    FROM unnest(%(keys)s::text[]) AS given (key)
    WHERE pg_try_advisory_xact_lock(
-- include: lock_class
        , hashtext(given.key)
    )
) locked
CROSS JOIN LATERAL (
    SELECT set_config('tenantqueue.gates', locked.keys::text, true)
    OFFSET 0
) told
