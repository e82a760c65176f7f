-- Keep a monitor from ending until the commit, since details are being added to it. Returns whether
-- the transaction is READ COMMITTED: only then a later statement sees whether it has ended.
-- Locks: advisory, shared by all who add. Waits for end_monitors.sql only, for milliseconds.
SELECT current_setting('transaction_isolation') = 'read committed' AS is_fresh
FROM (
    SELECT pg_advisory_xact_lock_shared(
-- include: lock_class
        , hashtext(%(key)s::text)
    )
    OFFSET 0
) locked
