-- Let the lock of a worker process go that has ended and whose jobs are taken care of.
SELECT pg_advisory_unlock(%(lock_class)s::integer, %(worker)s::integer)
