-- Where ready jobs begin: the least id of each lane, queue and priority that has some, at most `most`
-- of them. One row of arrays. `last_id` is the last id that a job was given, `awake` the number of
-- workers that do not sleep, `walked` that of the index entries read, dead ones included.
-- Index: tenantqueue_job_ready, from each lane, queue and priority on to the next.
WITH RECURSIVE began AS MATERIALIZED (
    SELECT pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_ready')) AS entries
), spot AS (
    SELECT one.lane, one.queue_id, one.priority, one.id
    FROM began
    CROSS JOIN LATERAL (
        SELECT j.lane, j.queue_id, j.priority, j.id
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created' AND coalesce(began.entries, 0) >= 0
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT 1
    ) one
    UNION ALL
    SELECT one.lane, one.queue_id, one.priority, one.id
    FROM spot
    CROSS JOIN LATERAL (
        SELECT j.lane, j.queue_id, j.priority, j.id
        FROM tenantqueue_job_hot j
        WHERE j.state = 'created'
            AND (j.lane, j.queue_id, j.priority) > (spot.lane, spot.queue_id, spot.priority)
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT 1
    ) one
)
SELECT
    array_agg(found.lane) AS lanes,
    array_agg(found.queue_id) AS queues,
    array_agg(found.priority) AS priorities,
    array_agg(found.id) AS ids,
    coalesce(pg_sequence_last_value('tenantqueue_job_id_seq'::regclass), 0) AS last_id,
    (
        SELECT count(*)
        FROM tenantqueue_worker w
        WHERE w.sleeping_until IS NULL OR w.sleeping_until <= statement_timestamp()
    ) AS awake,
    coalesce(
        pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_ready'))
        - (SELECT began.entries FROM began),
        0
    ) AS walked
FROM (SELECT * FROM spot LIMIT %(most)s::integer) found
