-- The key of an advisory lock that has one. Another installation in the database, in a schema of
-- its own, has another key.
(%(key)s::bigint << 32) + 'tenantqueue_tenantqueue'::regclass::oid::bigint
