-- Take up to `most` sleeping workers that may run jobs of one of these queues (`tenants`, `queues`:
-- pairs), clear their sleep and notify each on a channel of its own. Runs after the commit of the
-- enqueue, in a transaction of its own.
-- Locks: worker rows, SKIP LOCKED: two enqueuers never wake the same worker or wait for each other.
-- Index: tenantqueue_worker_sleeping, from now on: expired sleepers are not looked at. (A condition
-- on clock_timestamp() could not use the index: it is volatile.)
-- `is_alone`: the statement is a transaction of its own, which commits as in sleep_worker.sql.
-- With several queues, one more for each: the first ones may all have filters that leave a queue out.
-- Parameters stand in subqueries, so that a plan for these very values looks no cheaper than one for all:
-- else the statement, prepared though it is, would be planned each time (0.6 ms, longer than it runs).
-- A row without id says that nobody was woken although somebody sleeps: that row is locked just now,
-- by the worker's own heartbeat, say.
WITH anybody AS MATERIALIZED (
    SELECT w.id
    FROM tenantqueue_worker w
    WHERE w.sleeping_until > statement_timestamp()
        AND EXISTS (
            SELECT
            FROM unnest((SELECT %(tenants)s::text[]), (SELECT %(queues)s::text[])) AS filled (tenant, queue)
            WHERE (w.queues = '{}' OR filled.queue = ANY (w.queues))
                AND NOT filled.queue = ANY (w.exclude_queues)
                AND (w.tenants = '{}' OR filled.tenant = ANY (w.tenants))
        )
    LIMIT (SELECT %(most)s::integer)
    FOR NO KEY UPDATE SKIP LOCKED
), somebody AS MATERIALIZED (
    SELECT found.id
    FROM unnest((SELECT %(tenants)s::text[]), (SELECT %(queues)s::text[])) AS filled (tenant, queue)
    CROSS JOIN LATERAL (
        SELECT w.id
        FROM tenantqueue_worker w
        WHERE w.sleeping_until > statement_timestamp()
            AND (w.queues = '{}' OR filled.queue = ANY (w.queues))
            AND NOT filled.queue = ANY (w.exclude_queues)
            AND (w.tenants = '{}' OR filled.tenant = ANY (w.tenants))
        LIMIT 1
        FOR NO KEY UPDATE SKIP LOCKED
    ) found
    WHERE cardinality((SELECT %(queues)s::text[])) > 1
), sleeper AS MATERIALIZED (
    SELECT id FROM anybody
    UNION
    SELECT id FROM somebody
), woken AS (
    UPDATE tenantqueue_worker AS w
    SET sleeping_until = NULL
    FROM sleeper
    WHERE w.id = sleeper.id
    RETURNING
        w.id,
        pg_notify('tenantqueue_' || w.id, ''),
        CASE WHEN %(is_alone)s::boolean THEN set_config('synchronous_commit', 'off', true) END
)
SELECT woken.id FROM woken
UNION ALL
SELECT NULL
WHERE NOT EXISTS (SELECT FROM sleeper)
    AND EXISTS (
        SELECT
        FROM tenantqueue_worker w
        WHERE w.sleeping_until > statement_timestamp()
            AND EXISTS (
                SELECT
                FROM unnest((SELECT %(tenants)s::text[]), (SELECT %(queues)s::text[])) AS filled (tenant, queue)
                WHERE (w.queues = '{}' OR filled.queue = ANY (w.queues))
                    AND NOT filled.queue = ANY (w.exclude_queues)
                    AND (w.tenants = '{}' OR filled.tenant = ANY (w.tenants))
            )
    )
