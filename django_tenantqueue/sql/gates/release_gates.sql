-- Let jobs through gates of a kind, and take back unclaimed ones that no longer belong inside.
-- Makes the rows of sessions and users that have none. Runs after lock_gates.sql in the same READ
-- COMMITTED transaction: it sees all that earlier releases of these gates did.
-- Locks: the jobs that move, SKIP LOCKED. Indexes: tenantqueue_job_session_line,
-- tenantqueue_job_session_inside, tenantqueue_job_session_block, tenantqueue_job_user_line,
-- tenantqueue_job_user_inside, tenantqueue_job_exclusive_line, tenantqueue_job_exclusive_inside,
-- the primary key for the update, the unique one of (gate_key, kind).
WITH RECURSIVE given AS MATERIALIZED (
    SELECT unnest(%(keys)s::text[]) AS key
),
-- include: gates
, made AS (
    INSERT INTO tenantqueue_session (kind, tenant, key, gate_key, created_at)
    SELECT
        replace(%(kind)s::text, 'session', 'serial'),
        regexp_replace(substring(gate.key FROM E'^(?:[^\\\\/]|\\\\.)*'), E'\\\\(.)', E'\\1', 'g'),
        substring(gate.key FROM E'^(?:[^\\\\/]|\\\\.)*/(.*)$'), gate.key, clock_timestamp()
    FROM gate
    WHERE gate.session_id IS NULL AND %(kind)s::text <> 'exclusive'
    ON CONFLICT DO NOTHING
), pulled AS MATERIALIZED (
    SELECT misplaced.key, job.id
    FROM misplaced
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        -- as it was read: no worker has claimed it, no other gate has moved it
        WHERE j.id = misplaced.id AND j.state = misplaced.state
            AND j.held_by IS NOT DISTINCT FROM misplaced.held_by
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    WHERE misplaced.is_inside
), passed AS MATERIALIZED (
    SELECT job.id, job.held_by
    FROM (
        SELECT
            misplaced.key, misplaced.id,
            row_number() OVER (PARTITION BY misplaced.key ORDER BY misplaced.nth) AS nth
        FROM misplaced
        WHERE NOT misplaced.is_inside
    ) next
    JOIN gate ON gate.key = next.key
    CROSS JOIN LATERAL (
        SELECT
            j.id,
            CASE
                WHEN %(kind)s::text = 'session' AND j.monitor_id IS NOT NULL THEN 'details'
                WHEN %(kind)s::text = 'session' AND j.user_key IS NOT NULL THEN 'user'
                WHEN %(kind)s::text <> 'exclusive' AND j.exclusive_key IS NOT NULL THEN 'exclusive'
            END AS held_by
        FROM tenantqueue_job_hot j
        WHERE j.id = next.id AND j.held_by = %(kind)s::text
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    -- one that could not be pulled back keeps its place
    WHERE next.nth <= gate.capacity
        - (SELECT count(*) FROM inside WHERE inside.key = next.key)
        + (SELECT count(*) FROM pulled WHERE pulled.key = next.key)
), move AS MATERIALIZED (
    SELECT passed.id, passed.held_by, true AS passes FROM passed
    UNION ALL
    SELECT pulled.id, %(kind)s::text, false FROM pulled
)
UPDATE tenantqueue_job_hot AS job
SET held_by = move.held_by,
    state = CASE WHEN move.held_by IS NULL THEN 'created' ELSE 'held' END
FROM move
WHERE job.id = move.id
    -- not redundant: see finish_jobs.sql
    AND job.id = ANY (ARRAY(SELECT m.id FROM move m))
RETURNING
    job.id, move.passes, job.state, job.session_key, job.user_key, job.exclusive_key,
    job.monitor_id::text, job.lane, job.queue_id, job.priority
