-- Remove rows of sessions and users in which nothing is set, which are older than `keep_seconds`
-- and have no job before them or inside, among the next `most` from `after` on. A release or a halt
-- makes a row again when it needs one.
-- Locks: the rows, SKIP LOCKED. Indexes: tenantqueue_session_pkey, tenantqueue_job_session_line,
-- tenantqueue_job_session_inside, tenantqueue_job_user_line, tenantqueue_job_user_inside.
WITH
-- include: gate_jobs
, candidate AS MATERIALIZED (
    SELECT s.id, CASE s.kind WHEN 'serial' THEN 'session' ELSE s.kind END AS kind, s.gate_key
    FROM tenantqueue_session s
    WHERE s.id > %(after)s::bigint
        AND s.num_slots IS NULL AND NOT s.paused AND s.halted_at IS NULL
        AND s.on_wait = '' AND s.on_failure = ''
        AND s.created_at < clock_timestamp() - make_interval(secs => %(keep_seconds)s::float8)
    ORDER BY s.id
    LIMIT %(most)s::integer
), idle AS MATERIALIZED (
    SELECT session.id
    FROM candidate
    CROSS JOIN LATERAL (
        SELECT s.id
        FROM tenantqueue_session s
        WHERE s.id = candidate.id
            AND s.num_slots IS NULL AND NOT s.paused AND s.halted_at IS NULL
            AND s.on_wait = '' AND s.on_failure = ''
        FOR UPDATE SKIP LOCKED
    ) session
    WHERE (
            SELECT true
            FROM line_job l
            WHERE l.kind = candidate.kind AND l.key = candidate.gate_key
            LIMIT 1
        ) IS NULL
        AND (
            SELECT true
            FROM inside_job i
            WHERE i.kind = candidate.kind AND i.key = candidate.gate_key
            LIMIT 1
        ) IS NULL
), removed AS (
    DELETE FROM tenantqueue_session AS session
    USING idle
    WHERE session.id = idle.id
        -- not redundant: see finish_jobs.sql
        AND session.id = ANY (ARRAY(SELECT idle.id FROM idle))
    RETURNING session.id
)
SELECT (SELECT count(*) FROM removed) AS removed, count(*) AS looked_at, max(candidate.id) AS last
FROM candidate
