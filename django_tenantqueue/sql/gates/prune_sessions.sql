-- Remove those of these rows of sessions and users that are idle still, whose gates lock_idle_gates.sql
-- of the same READ COMMITTED transaction has locked: its own snapshot shows what was let through before.
-- A job that fails could not halt a session whose row is gone. One that is needed again is made again
-- by the next release.
-- Locks: the rows, SKIP LOCKED. Indexes: tenantqueue_session_pkey, tenantqueue_job_session_line,
-- tenantqueue_job_session_inside, tenantqueue_job_user_line, tenantqueue_job_user_inside.
WITH candidate AS MATERIALIZED (
    SELECT session.*
    FROM unnest(%(ids)s::bigint[]) AS given (id)
    CROSS JOIN LATERAL (
        SELECT s.id, s.kind, s.gate_key
        FROM tenantqueue_session s
        WHERE s.id = given.id
            AND s.num_slots IS NULL AND NOT s.paused AND s.halted_at IS NULL
            AND s.on_wait = '' AND s.on_failure = ''
        FOR UPDATE SKIP LOCKED
    ) session
), idle AS MATERIALIZED (
    SELECT candidate.id
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
)
DELETE FROM tenantqueue_session AS session
USING idle
WHERE session.id = idle.id
    -- not redundant: see finish_jobs.sql
    AND session.id = ANY (%(ids)s::bigint[])
RETURNING session.id
