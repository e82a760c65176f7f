-- Say to which of these monitors nobody is adding details, and let nobody begin until the commit.
-- Locks: advisory, not waited for; who adds details holds it in share mode until their commit, see
-- share_addition.sql. Runs before end_monitors.sql in the same READ COMMITTED transaction.
SELECT given.key
FROM unnest(%(keys)s::text[]) AS given (key)
WHERE pg_try_advisory_xact_lock(%(lock_class)s::integer, hashtext(given.key))
