-- Become the supervisor that does the maintenance, unless another one is. Locks: an advisory lock
-- until the end of the session.
SELECT pg_try_advisory_lock(
-- include: lock_key
)
