-- Let the lock of a worker process go that has ended and whose jobs are taken care of.
SELECT pg_advisory_unlock(
-- include: lock_class
    , %(worker)s::integer
)
