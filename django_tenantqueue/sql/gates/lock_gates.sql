-- Lock gates until the commit, in one order for all: nobody else lets jobs through them meanwhile.
-- First statement of a release. Locks: advisory, by the hash of the key; two keys of one hash wait for
-- each other. Whoever waits is another release; it gives up after the lock_timeout of its transaction.
-- `has_controls`: some tasks are paused or capped.
SELECT
    pg_advisory_xact_lock(%(lock_class)s::integer, gate.hash),
    EXISTS (
        SELECT
        FROM tenantqueue_taskcontrol c
        WHERE c.paused OR c.num_slots IS NOT NULL
    ) AS has_controls
FROM (
    SELECT DISTINCT hashtext(given.key) AS hash
    FROM unnest(%(keys)s::text[]) AS given (key)
    ORDER BY 1
) gate
