-- Store jobs that do not run because other jobs have their keys: in the history, as cancelled, each
-- element of `args` with its own of `keys` and the reason in `errors`. Locks: none.
INSERT INTO tenantqueue_job_history (
    final, finished_at, errors,
-- include: new_job_columns
)
SELECT
    true, clock_timestamp(), jsonb_build_array(job.error),
-- include: new_job_values
FROM (
    SELECT
        nextval('tenantqueue_job_id_seq') AS id, 'cancelled' AS state,
        coalesce(
            %(run_at)s::timestamptz,
            clock_timestamp() + make_interval(secs => %(delay_seconds)s::float8)
        ) AS at,
        element.args, CASE WHEN %(excludes)s::boolean THEN element.key END AS exclusive_key,
        element.key AS unique_key, element.error
    FROM ROWS FROM (
        jsonb_array_elements(%(args)s::jsonb), unnest(%(keys)s::text[]),
        jsonb_array_elements(%(errors)s::jsonb)
    ) AS element (args, key, error)
) job
RETURNING id
