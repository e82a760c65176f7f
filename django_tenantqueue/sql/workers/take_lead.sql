-- Become the supervisor that does the maintenance, unless another one is; else its deputy, if it has
-- none. Both advisory locks are held until the session's end. The deputy that comes to lead makes
-- room for another.
SELECT leads, CASE
    WHEN leads THEN %(is_deputy)s::boolean AND NOT pg_advisory_unlock(%(deputy)s::bigint)
    ELSE %(is_deputy)s::boolean OR pg_try_advisory_lock(%(deputy)s::bigint)
END
FROM (SELECT pg_try_advisory_lock(%(lead)s::bigint) AS leads OFFSET 0) tried
