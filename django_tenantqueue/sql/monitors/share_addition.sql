-- Keep a monitor from ending until the commit, since details are being added to it. The caller looks
-- in a later statement whether it has ended, which only a READ COMMITTED transaction shows: the
-- snapshot of another may be older than the lock. Returns whether it is one.
-- Locks: advisory, shared by all who add; waits for end_monitors.sql only, which takes milliseconds.
SELECT current_setting('transaction_isolation') = 'read committed' AS is_fresh
FROM (
    SELECT pg_advisory_xact_lock_shared(%(lock_class)s::integer, hashtext(%(key)s::text))
    OFFSET 0
) locked
