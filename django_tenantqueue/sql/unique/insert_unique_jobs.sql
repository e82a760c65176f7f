-- Enqueue jobs that take a key, each element of `args` with its own of `keys` (all different): as
-- insert_gated_jobs.sql. Where a key is another job's, no job is inserted and that one is returned.
-- A row that is missing in the answer: somebody else has taken its key meanwhile; look once more.
-- (Or the queue is retired, not visible, or has a limit: see insert_jobs.sql.)
--
-- A key blocks while its time lasts and, seen from the row of its job in the same snapshot, the job is
-- what the key's mode asks for. Else the key is stale and taken over. `passed_over`: jobs that do not
-- block any more whatever their rows say.
-- `prior_id` is compared with the row as it is then: of two that saw the same stale key one gets it.
-- Locks: the keys' rows, in their order; waits for another uncommitted insert of the same key only.
-- Indexes: tenantqueue_uniquekey_pkey, the primary key of the hot leaf.
WITH given AS MATERIALIZED (
    SELECT element.nth, element.args, element.key
    FROM ROWS FROM (jsonb_array_elements(%(args)s::jsonb), unnest(%(keys)s::text[]))
        WITH ORDINALITY AS element (args, key, nth)
), existing_job AS MATERIALIZED (
    SELECT
        given.nth, held.job_id, job.state,
        (held.expires_at IS NULL OR held.expires_at > statement_timestamp())
        AND held.job_id <> ALL (%(passed_over)s::bigint[])
        AND CASE held.mode
            WHEN 'until_expired' THEN true
            WHEN 'until_executed' THEN job.state IS NOT NULL
            ELSE coalesce(job.state IN ('scheduled', 'held', 'created'), false)
        END AS blocks,
        held.mode IN ('until_executing', 'until_and_while_executing') AS ends_at_start
    FROM given
    CROSS JOIN LATERAL (
        SELECT k.job_id, k.mode, k.expires_at
        FROM tenantqueue_uniquekey k
        WHERE k.key = given.key
        OFFSET 0
    ) held
    LEFT JOIN LATERAL (
        SELECT j.state
        FROM tenantqueue_job_hot j
        WHERE j.id = held.job_id
        OFFSET 0
    ) job ON true
), due AS MATERIALIZED (
    SELECT
        moment.at,
        CASE
            WHEN %(held_by)s::text IN ('monitor', 'session') THEN 'held'
            WHEN moment.at > clock_timestamp() THEN 'scheduled'
            WHEN %(held_by)s::text IS NOT NULL THEN 'held'
            ELSE 'created'
        END AS state
    FROM (
        SELECT coalesce(
            %(run_at)s::timestamptz,
            clock_timestamp() + make_interval(secs => %(delay_seconds)s::float8)
        ) AS at
    ) moment
    LEFT JOIN tenantqueue_tenantqueue q ON q.id = %(queue_id)s::integer
    WHERE NOT coalesce(
        q.retired OR (q.max_waiting IS NOT NULL AND NOT %(has_room)s::boolean),
        NOT %(unseen)s::boolean
    )
    OFFSET 0
), wanted AS MATERIALIZED (
    SELECT nextval('tenantqueue_job_id_seq') AS id, free.*
    FROM (
        SELECT given.nth, given.key, given.args, existing_job.job_id AS prior_id, due.at, due.state
        FROM given
        LEFT JOIN existing_job ON existing_job.nth = given.nth
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
        id, queue_id, lane, priority, is_async, state, held_by, run_at, expires_at, max_attempts,
        timeout_seconds, hard_timeout_seconds, name, source_type, source_id, source_method, args,
        labels, created_by, context, monitor_id, session_key, session_skip, session_halt, user_key,
        exclusive_key, unique_key, unique_mode
    )
    SELECT
        wanted.id,
        %(queue_id)s::integer, %(lane)s::smallint, %(priority)s::smallint, %(is_async)s::boolean,
        wanted.state, CASE WHEN wanted.state = 'held' THEN %(held_by)s::text END,
        wanted.at, %(expires_at)s::timestamptz, %(max_attempts)s::smallint,
        %(timeout_seconds)s::float8, %(hard_timeout_seconds)s::float8,
        %(name)s::text, %(source_type)s::text, %(source_id)s::text,
        %(source_method)s::text, wanted.args, %(labels)s::text[], %(created_by)s::text,
        %(context)s::jsonb, %(monitor_id)s::bigint, %(session_key)s::text, %(session_skip)s::boolean,
        %(session_halt)s::boolean, %(user_key)s::text,
        CASE WHEN %(excludes)s::boolean THEN wanted.key END, wanted.key, %(unique_mode)s::text
    FROM taken
    JOIN wanted ON wanted.id = taken.job_id
    RETURNING id, state
)
SELECT wanted.nth, made.id, made.state, true AS is_new, false AS ends_at_start
FROM made
JOIN wanted ON wanted.id = made.id
UNION ALL
SELECT existing_job.nth, existing_job.job_id, existing_job.state, false, existing_job.ends_at_start
FROM existing_job
WHERE existing_job.blocks
