-- Wait for a turn to claim. One worker at a time has its turn, which ends with its transaction. A
-- worker goes to the turnstile after a claim that found all queues locked.
-- Locks: one advisory lock, which no other statement takes; nothing is held during the wait.
SELECT pg_advisory_xact_lock(
-- include: lock_key
)
