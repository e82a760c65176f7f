-- Wake sleeping workers when it is not known which queues have new jobs: after a promotion, and by
-- a worker that left jobs. Up to `most` of each kind, which is the set of workers that take the
-- same queues and tenants; else a worker that can take none of the jobs might be woken in place of
-- one that can. The kinds are read from at most 1000 sleepers with filters, and at most 51 kinds
-- are woken.
-- Locks: worker rows, SKIP LOCKED. Index: tenantqueue_worker_sleeping.
-- A row without id: see wake_workers.sql; here one for each kind.
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
        ORDER BY w.sleeping_until DESC  -- see wake_workers.sql
        LIMIT %(most)s
        FOR NO KEY UPDATE SKIP LOCKED
    ) found
),
-- include: woken
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
