-- As wake_workers.sql, whatever the worker takes: after promotion, and by a worker that claimed all
-- it had room for and so may have left some. Nobody knows here for which queues: up to `most` are
-- woken of each kind of workers, those that take the same queues and tenants, or one for whom there
-- is nothing would be woken in place of the one that has to.
-- The kinds are read from 1000 sleepers with filters at most, and of at most 51 kinds some are woken.
-- Index: tenantqueue_worker_sleeping.
-- `is_alone`: the statement is a transaction of its own, which commits as in sleep_worker.sql.
-- A row without id: see wake_workers.sql; for each kind here.
WITH picky AS MATERIALIZED (
    SELECT w.queues, w.exclude_queues, w.tenants
    FROM tenantqueue_worker w
    WHERE w.sleeping_until > statement_timestamp() AND w.id <> %(worker)s
        AND (w.queues <> '{}' OR w.exclude_queues <> '{}' OR w.tenants <> '{}')
    LIMIT 1000
), kind AS MATERIALIZED (
    (SELECT DISTINCT p.queues, p.exclude_queues, p.tenants FROM picky p LIMIT 50)
    UNION ALL
    VALUES ('{}'::text[], '{}'::text[], '{}'::text[])
), sleeper AS MATERIALIZED (
    SELECT found.id, kind.queues, kind.exclude_queues, kind.tenants
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
), woken AS (
    UPDATE tenantqueue_worker AS w
    SET sleeping_until = NULL
    FROM sleeper
    WHERE w.id = sleeper.id
        -- not redundant: see finish_jobs.sql
        AND w.id = ANY (ARRAY(SELECT s.id FROM sleeper s))
    RETURNING
        w.id,
        pg_notify('tenantqueue_' || w.id, ''),
        CASE WHEN %(is_alone)s::boolean THEN set_config('synchronous_commit', 'off', true) END
)
SELECT woken.id FROM woken
UNION ALL
SELECT NULL
FROM kind
WHERE NOT EXISTS (
        SELECT
        FROM sleeper s
        WHERE s.queues = kind.queues
            AND s.exclude_queues = kind.exclude_queues
            AND s.tenants = kind.tenants
    )
    AND EXISTS (
        SELECT
        FROM tenantqueue_worker w
        WHERE w.sleeping_until > statement_timestamp() AND w.id <> %(worker)s
            AND w.queues = kind.queues
            AND w.exclude_queues = kind.exclude_queues
            AND w.tenants = kind.tenants
    )
