-- Let another worker watch full queues.
SELECT pg_advisory_unlock(%(lock_class)s::integer, %(key)s::integer)
