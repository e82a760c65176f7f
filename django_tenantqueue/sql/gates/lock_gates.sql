-- Lock gates until the commit, in one order for all: no other session releases them meanwhile.
-- The first statement of a release. `has_controls`: some tasks have a control.
-- Locks: advisory, by the hash of the key. Two keys of one hash share a lock. Another release waits
-- for it until the lock_timeout of its transaction.
SELECT
    pg_advisory_xact_lock(
-- include: lock_class
        , gate.hash
    ),
    EXISTS (
        SELECT
        FROM tenantqueue_taskcontrol c
        WHERE c.paused OR c.num_slots IS NOT NULL OR c.max_per_second IS NOT NULL
    ) AS has_controls
FROM (
    SELECT DISTINCT hashtext(given.key) AS hash
    FROM unnest(%(keys)s::text[]) AS given (key)
    ORDER BY 1
) gate
