-- Count a job that a client of Fireworq has pushed, after its commit. It waits for no disk: clients
-- that push at once share the row. Locks: the row. Index: primary key.
WITH quick AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
)
INSERT INTO tenantqueue_fireworqqueue AS counted (
    queue_id, pushes, minute, pushes_in_minute, pushes_before
)
SELECT %(queue_id)s::integer, 1, date_trunc('minute', clock_timestamp(), 'UTC'), 1, 0
FROM quick
ON CONFLICT (queue_id) DO UPDATE
SET pushes = counted.pushes + 1,
    pushes_in_minute = CASE
        WHEN counted.minute >= excluded.minute THEN counted.pushes_in_minute
        ELSE 0
    END + 1,
    pushes_before = CASE
        WHEN counted.minute >= excluded.minute THEN counted.pushes_before
        WHEN counted.minute = excluded.minute - interval '1 minute' THEN counted.pushes_in_minute
        ELSE 0
    END,
    minute = greatest(counted.minute, excluded.minute)
