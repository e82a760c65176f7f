-- Wake up to `most` sleeping workers that take jobs of one of these queues (pairs of `tenants` and
-- `queues`), idle ones first (see sleep.py), and with several queues one more for each: the filters
-- of the first workers may all leave out the same queue. Runs in a transaction after the enqueue's.
-- Locks: worker rows, SKIP LOCKED. Index: tenantqueue_worker_sleeping, which shows no expired
-- sleepers (a condition on clock_timestamp(), which is volatile, could not use it).
-- Parameters stand in subqueries: a plan for these values then looks no cheaper than one for all,
-- and the prepared statement is not planned again for each call (0.6 ms).
-- A row without id: a worker sleeps, and its row is locked, for example by its heartbeat.
WITH filled AS MATERIALIZED (
    SELECT queue.tenant, queue.queue
    FROM unnest((SELECT %(tenants)s::text[]), (SELECT %(queues)s::text[])) AS queue (tenant, queue)
), for_any_queue AS MATERIALIZED (
    SELECT w.id
-- include: sleeper_of_filled
    ORDER BY w.sleeping_until DESC
    LIMIT (SELECT %(most)s::integer)
    FOR NO KEY UPDATE SKIP LOCKED
), one_per_queue AS MATERIALIZED (
    SELECT found.id
    FROM filled
    CROSS JOIN LATERAL (
        SELECT w.id
        FROM tenantqueue_worker w
        WHERE w.sleeping_until > statement_timestamp() AND
-- include: takes_filled
        ORDER BY w.sleeping_until DESC
        LIMIT 1
        FOR NO KEY UPDATE SKIP LOCKED
    ) found
    WHERE cardinality((SELECT %(queues)s::text[])) > 1
), sleeper AS MATERIALIZED (
    SELECT id FROM for_any_queue
    UNION
    SELECT id FROM one_per_queue
),
-- include: woken
SELECT woken.id FROM woken
UNION ALL
SELECT NULL
WHERE NOT EXISTS (SELECT FROM sleeper)
    AND EXISTS (
        SELECT
-- include: sleeper_of_filled
    )
