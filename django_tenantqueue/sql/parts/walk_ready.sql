-- Steps from one place with ready jobs to the next, in the order of the index. Step 0 is the start.
-- `began.entries`: index entries that this transaction had read before.
began AS MATERIALIZED (
    SELECT
        coalesce(pg_sequence_last_value('tenantqueue_job_id_seq'::regclass), 0) AS last_id,
        pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_ready'))
        + pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_slots')) AS entries
), step AS (
    SELECT
        (%(from_lane)s)::smallint AS lane, %(from_queue)s::integer AS queue_id,
        (%(from_priority)s)::smallint AS priority, began.last_id AS id, 0 AS nth
    FROM began
    UNION ALL
    SELECT next.lane, next.queue_id, next.priority, next.id, step.nth + 1
    FROM step
    CROSS JOIN LATERAL (
        SELECT j.lane, j.queue_id, j.priority, j.id
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready'
            AND (j.lane, j.queue_id, j.priority) > (step.lane, step.queue_id, step.priority)
        ORDER BY j.lane, j.queue_id, j.priority, j.id
        LIMIT 1
    ) next
    WHERE step.nth < %(most_steps)s::integer
)
