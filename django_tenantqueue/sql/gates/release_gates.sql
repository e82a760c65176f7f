-- Let jobs through gates of a kind, and take back unclaimed ones that no longer belong inside.
-- Makes the rows of sessions and users that have none. Runs after lock_gates.sql in the same READ
-- COMMITTED transaction: it sees all that earlier releases of these gates did.
-- Locks: the jobs that move, SKIP LOCKED. Indexes: tenantqueue_job_session_line,
-- tenantqueue_job_session_inside, tenantqueue_job_session_block, tenantqueue_job_limit_user_line,
-- tenantqueue_job_limit_user_inside, tenantqueue_job_exclusive_line,
-- tenantqueue_job_exclusive_inside, the primary key for the update, the unique one of (gate_key,
-- kind).
WITH RECURSIVE given AS MATERIALIZED (
    SELECT unnest(%(keys)s::text[]) AS key
),
-- include: gate_room
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
    SELECT job.id
    FROM (
        SELECT
            misplaced.key, misplaced.id,
            row_number() OVER (PARTITION BY misplaced.key ORDER BY misplaced.nth) AS nth
        FROM misplaced
        WHERE NOT misplaced.is_inside
    ) next
    JOIN gate ON gate.key = next.key
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        -- not "=", which another index would serve, too
        WHERE j.id = next.id AND j.held_by IS NOT DISTINCT FROM %(kind)s::text
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    -- one that could not be pulled back keeps its place
    WHERE next.nth <= gate.capacity
        - (SELECT count(*) FROM inside WHERE inside.key = next.key)
        + (SELECT count(*) FROM pulled WHERE pulled.key = next.key)
)
UPDATE tenantqueue_job_hot AS job
SET (state, held_by) = (
    SELECT CASE WHEN next.gate IS NULL THEN 'ready' ELSE 'held' END, next.gate
    FROM (
        SELECT CASE
            WHEN job.held_by IS DISTINCT FROM %(kind)s::text THEN %(kind)s::text  -- pulled
            WHEN %(kind)s::text = 'session' AND job.monitor_id IS NOT NULL THEN 'details'
            WHEN %(kind)s::text = 'session' AND job.limit_user IS NOT NULL THEN 'limit_user'
            WHEN %(kind)s::text <> 'exclusive' AND job.exclusive_key IS NOT NULL THEN 'exclusive'
        END AS gate
    ) next
)
-- by arrays: see finish_jobs.sql
WHERE job.id = ANY (ARRAY(SELECT p.id FROM passed p UNION ALL SELECT p.id FROM pulled p))
RETURNING
    job.id, job.held_by IS DISTINCT FROM %(kind)s::text AS passes, job.state, job.session_key,
    job.limit_user, job.exclusive_key, job.monitor_id::text, job.lane, job.queue_id, job.priority
