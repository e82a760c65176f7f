-- Remove rows of sessions and users in which nothing is set, which are older than `keep_seconds`
-- and have no job before them or inside, among the next `most` rows from `after` on. A release or a
-- halt makes a row again when it needs one.
-- Locks: the rows, by id, as operators do. Indexes: tenantqueue_session_pkey,
-- tenantqueue_job_session_line, tenantqueue_job_session_inside, tenantqueue_job_limit_user_line,
-- tenantqueue_job_limit_user_inside.
WITH
-- include: gate_jobs
, candidate AS MATERIALIZED (
    SELECT s.id
    FROM tenantqueue_session s
    WHERE s.id > %(after)s::bigint
    ORDER BY s.id
    LIMIT %(most)s::integer
), removed AS (
    DELETE FROM tenantqueue_session AS session
    WHERE session.id = ANY (ARRAY(SELECT candidate.id FROM candidate))
        AND session.num_slots IS NULL AND NOT session.paused AND session.halted_at IS NULL
        AND session.on_wait = '' AND session.on_failure = ''
        AND session.created_at < clock_timestamp() - make_interval(secs => %(keep_seconds)s::float8)
        AND (
            SELECT true
            FROM line_job l
            WHERE l.kind = replace(session.kind, 'serial', 'session') AND l.key = session.gate_key
            LIMIT 1
        ) IS NULL
        AND (
            SELECT true
            FROM inside_job i
            WHERE i.kind = replace(session.kind, 'serial', 'session') AND i.key = session.gate_key
            LIMIT 1
        ) IS NULL
    RETURNING session.id
)
SELECT (SELECT count(*) FROM removed) AS removed, count(*) AS looked_at, max(candidate.id) AS last
FROM candidate
