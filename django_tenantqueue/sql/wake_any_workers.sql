-- As wake_workers.sql, whatever the worker takes: after promotion, and by a worker that claimed all
-- it had room for and so may have left some.
WITH sleeper AS MATERIALIZED (
    SELECT w.id
    FROM tenantqueue_worker w
    WHERE w.sleeping_until > statement_timestamp() AND w.id <> %(worker)s
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_worker AS w
SET sleeping_until = NULL
FROM sleeper
WHERE w.id = sleeper.id
RETURNING w.id, pg_notify('tenantqueue_' || w.id, '')
