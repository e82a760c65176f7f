-- Hold the lock that says that a worker process lives, until this session ends. Never waits.
SELECT pg_try_advisory_lock(%(lock_class)s::integer, %(worker)s::integer)
