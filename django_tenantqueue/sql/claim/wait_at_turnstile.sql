-- Wait in line before a claim, for a worker that has found all that is ready in others' hands: of those
-- only one at a time claims, however many there are. Its place ends with the transaction.
-- Locks: one advisory lock, which no other statement takes; nothing is held while it waits.
SELECT pg_advisory_xact_lock(%(lock_class)s::integer, 0)
