-- Lock those of these gates that nobody else lets jobs through, until the commit, and name them to
-- release_monitors.sql of the same transaction. For a worker that has the ends of jobs in it: it waits
-- for no lock, and lets the others through in a transaction of its own.
-- Locks: advisory, not waited for: as lock_gates.sql.
SELECT locked.keys
FROM (
    SELECT coalesce(array_agg(given.key), '{}') AS keys
    FROM unnest(%(keys)s::text[]) AS given (key)
    WHERE pg_try_advisory_xact_lock(%(lock_class)s::integer, hashtext(given.key))
) locked
CROSS JOIN LATERAL (
    SELECT set_config('tenantqueue.gates', locked.keys::text, true)
    OFFSET 0
) told
