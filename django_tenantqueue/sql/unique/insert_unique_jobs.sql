-- Enqueue jobs that take a key, each element of `args` with its own of `keys` (all different).
-- Where another job has the key, no job is inserted and that one is returned. A row is missing in
-- the answer when another session took the key meanwhile, or the queue takes none (see
-- parts/first_state.sql).
-- What blocks a key: see parts/blocking_keys.sql.
-- `prior_id` is compared with the row as it is then: of two that saw one stale key, one gets it.
-- Locks: the keys' rows, in their order; waits for another uncommitted insert of the same key only.
-- Indexes: tenantqueue_uniquekey_pkey, the primary key of the hot leaf.
WITH given AS MATERIALIZED (
    SELECT element.nth, element.args, element.key
    FROM ROWS FROM (jsonb_array_elements(%(args)s::jsonb), unnest(%(keys)s::text[]))
        WITH ORDINALITY AS element (args, key, nth)
),
-- include: blocking_keys
,
-- include: first_state
, wanted AS MATERIALIZED (
    SELECT nextval('tenantqueue_job_id_seq') AS id, free.*
    FROM (
        SELECT given.nth, given.key, given.args, existing_job.job_id AS prior_id, due.at, due.state
        FROM given
        LEFT JOIN existing_job ON existing_job.key = given.key
        CROSS JOIN due
        WHERE existing_job.blocks IS NOT TRUE
        ORDER BY given.nth
    ) free
), taken AS (
    INSERT INTO tenantqueue_uniquekey AS held (key, job_id, prior_id, mode, expires_at)
    SELECT
        wanted.key, wanted.id, wanted.prior_id, %(unique_mode)s::text,
        statement_timestamp() + make_interval(secs => %(ttl)s::float8)
    FROM wanted
    ORDER BY wanted.key
    ON CONFLICT (key) DO UPDATE
    SET job_id = EXCLUDED.job_id, prior_id = EXCLUDED.prior_id, mode = EXCLUDED.mode,
        expires_at = EXCLUDED.expires_at
    WHERE held.job_id = EXCLUDED.prior_id
    RETURNING held.job_id
), made AS (
    INSERT INTO tenantqueue_job_hot (
-- include: new_job_columns
    )
    SELECT
-- include: new_job_values
    FROM (
        SELECT
            wanted.id, wanted.state, wanted.at, wanted.args,
            CASE WHEN %(excludes)s::boolean THEN wanted.key END AS exclusive_key,
            wanted.key AS unique_key
        FROM taken
        JOIN wanted ON wanted.id = taken.job_id
    ) job
    RETURNING id, state
)
SELECT wanted.nth, made.id, made.state, true AS is_new, false AS ends_at_start
FROM made
JOIN wanted ON wanted.id = made.id
UNION ALL
SELECT given.nth, existing_job.job_id, existing_job.state, false, existing_job.ends_at_start
FROM existing_job
JOIN given ON given.key = existing_job.key
WHERE existing_job.blocks
