-- Hold the lock that says that a worker process lives, until this session ends. Never waits.
SELECT pg_try_advisory_lock(
-- include: lock_class
    , %(worker)s::integer
)
