-- First key of an advisory lock that has two. Another installation in the database, in a schema of
-- its own, has other keys. The trigger tenantqueue_queue_limited computes it, too.
hashtext(concat_ws(' ', %(lock_class)s::integer, 'tenantqueue_tenantqueue'::regclass::oid))
