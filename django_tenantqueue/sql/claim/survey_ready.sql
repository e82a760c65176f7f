-- Where ready jobs begin: the first id of at most `most_steps` places. One row. `last_id`: the last
-- id given to a job. `awake`: workers that do not sleep. `walked`: index entries read, dead ones
-- included.
-- Index: tenantqueue_job_ready, from each place to the next.
WITH RECURSIVE
-- include: walk_ready
, found AS MATERIALIZED (
    SELECT array_agg(ARRAY[step.lane, step.queue_id, step.priority, step.id]) AS places
    FROM step
    WHERE step.nth > 0
)
SELECT
    found.places, began.last_id,
    (
        SELECT count(*)
        FROM tenantqueue_worker w
        WHERE w.sleeping_until IS NULL OR w.sleeping_until <= statement_timestamp()
    ) AS awake,
    coalesce(
        pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_ready'))
        + pg_stat_get_xact_tuples_returned(to_regclass('tenantqueue_job_slots')) - began.entries,
        0
    ) AS walked
FROM found
CROSS JOIN began
