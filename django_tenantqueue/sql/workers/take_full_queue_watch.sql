-- Become the worker that watches full queues, unless another one is. Held until the session's end.
SELECT pg_try_advisory_lock(%(lock_class)s::integer, %(key)s::integer)
