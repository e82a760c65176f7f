-- Keep a monitor from ending until the commit, since details are being added to it. The caller looks
-- whether it has ended in a later statement, whose snapshot shows what was waited for: `is_fresh` says
-- whether there is such a snapshot, or that of the transaction is older than the lock.
-- Locks: advisory, shared among all who add; waits for end_monitors.sql only, which takes milliseconds.
SELECT current_setting('transaction_isolation') = 'read committed' AS is_fresh
FROM (
    SELECT pg_advisory_xact_lock_shared(%(lock_class)s::integer, hashtext(%(key)s::text))
    OFFSET 0
) locked
