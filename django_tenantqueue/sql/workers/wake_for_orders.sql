-- End the announced sleeps of some workers and notify each, whether there is work for it or not: an
-- operator has an order for it.
-- `is_alone`: the statement is a transaction of its own, which commits as in sleep_worker.sql.
-- Index: primary key.
UPDATE tenantqueue_worker
SET sleeping_until = NULL
WHERE id = ANY (%(ids)s::bigint[]) AND sleeping_until IS NOT NULL
RETURNING
    pg_notify('tenantqueue_' || id, ''),
    CASE WHEN %(is_alone)s::boolean THEN set_config('synchronous_commit', 'off', true) END
