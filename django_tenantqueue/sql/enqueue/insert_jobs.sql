-- Enqueue jobs that differ in their arguments only: an element of the JSON array `args` for each,
-- and one of `exclusive_keys`, which may be NULL. `held_by` is their first gate.
-- Ids rise in the order of the array. The queue row is read, never locked.
-- Returns no row when the queue takes none: see parts/first_state.sql.
-- Index: primary key of the queue.
WITH
-- include: first_state
, made AS (
    INSERT INTO tenantqueue_job_hot (
-- include: new_job_columns
    )
    SELECT
-- include: new_job_values
    FROM (
        SELECT
            nextval('tenantqueue_job_id_seq') AS id, due.state, due.at, element.args,
            element.exclusive_key, NULL::text AS unique_key
        FROM due
        CROSS JOIN ROWS FROM (
            jsonb_array_elements(%(args)s::jsonb), unnest(%(exclusive_keys)s::text[])
        ) AS element (args, exclusive_key)
    ) job
    RETURNING id
)
SELECT array_agg(made.id ORDER BY made.id) AS ids, (SELECT due.state FROM due) AS state
FROM made
HAVING count(*) > 0
