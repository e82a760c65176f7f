-- Find rows of sessions and users in which nothing is set, that are older than `keep_seconds`, and whose
-- gates no job stands before or has passed, among up to `most` of them from `after` on; lock their gates
-- until the commit, so that nobody lets a job through them before prune_sessions.sql has removed them.
-- Locks: advisory, not waited for, as lock_gates.sql: where somebody lets jobs through, the row stays.
-- Indexes: tenantqueue_session_pkey, tenantqueue_job_session_line, tenantqueue_job_session_inside,
-- tenantqueue_job_user_line, tenantqueue_job_user_inside.
WITH candidate AS MATERIALIZED (
    SELECT s.id, s.kind, s.gate_key
    FROM tenantqueue_session s
    WHERE s.id > %(after)s::bigint
        AND s.num_slots IS NULL AND NOT s.paused AND s.halted_at IS NULL
        AND s.on_wait = '' AND s.on_failure = ''
        AND s.created_at < clock_timestamp() - make_interval(secs => %(keep_seconds)s::float8)
    ORDER BY s.id
    LIMIT %(most)s::integer
), idle AS MATERIALIZED (
    SELECT candidate.id, candidate.kind, candidate.gate_key
    FROM candidate
    WHERE NOT EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE candidate.kind = 'serial' AND j.held_by = 'session'
            AND j.session_key = candidate.gate_key
        OFFSET 0
    ) AND NOT EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE candidate.kind = 'serial' AND j.session_key = candidate.gate_key
            AND (j.held_by IS NULL OR j.held_by IN ('user', 'exclusive', 'task', 'details'))
        OFFSET 0
    ) AND NOT EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE candidate.kind = 'user' AND j.held_by = 'user' AND j.user_key = candidate.gate_key
        OFFSET 0
    ) AND NOT EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE candidate.kind = 'user' AND j.user_key = candidate.gate_key
            AND (j.state IN ('created', 'queued', 'running') OR j.held_by = 'exclusive')
        OFFSET 0
    )
), locked AS MATERIALIZED (
    SELECT idle.id
    FROM idle
    WHERE pg_try_advisory_xact_lock(
        CASE idle.kind WHEN 'serial' THEN %(serial_class)s::integer ELSE %(user_class)s::integer END,
        hashtext(idle.gate_key)
    )
)
SELECT
    ARRAY(SELECT locked.id FROM locked) AS ids, count(*) AS looked_at, max(candidate.id) AS last
FROM candidate
