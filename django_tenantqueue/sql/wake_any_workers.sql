-- As wake_workers.sql, whatever the worker takes: after promotion, and by a worker that claimed all
-- it had room for and so may have left some. Nobody knows here for which queues: up to `most` are
-- woken of each kind of workers, those that take the same queues and tenants, or one for whom there
-- is nothing would be woken in place of the one that has to.
-- The kinds are read from 1000 sleepers at most, and at most 50 are woken.
-- Index: tenantqueue_worker_sleeping.
WITH asleep AS MATERIALIZED (
    SELECT w.queues, w.exclude_queues, w.tenants
    FROM tenantqueue_worker w
    WHERE w.sleeping_until > statement_timestamp() AND w.id <> %(worker)s
    LIMIT 1000
), kind AS MATERIALIZED (
    SELECT DISTINCT a.queues, a.exclude_queues, a.tenants
    FROM asleep a
    LIMIT 50
), sleeper AS MATERIALIZED (
    SELECT found.id
    FROM kind
    CROSS JOIN LATERAL (
        SELECT w.id
        FROM tenantqueue_worker w
        WHERE w.sleeping_until > statement_timestamp() AND w.id <> %(worker)s
            AND w.queues = kind.queues
            AND w.exclude_queues = kind.exclude_queues
            AND w.tenants = kind.tenants
        LIMIT %(most)s
        FOR NO KEY UPDATE SKIP LOCKED
    ) found
)
UPDATE tenantqueue_worker AS w
SET sleeping_until = NULL
FROM sleeper
WHERE w.id = sleeper.id
RETURNING w.id, pg_notify('tenantqueue_' || w.id, '')
