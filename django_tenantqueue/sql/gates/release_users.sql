-- Let jobs of users through, as many as their caps allow, and take back what no worker has claimed and
-- is too much or less urgent than what waits. Third statement of a release: see release_sessions.sql.
--
-- A user's cap is that of their row, else that of the tenant's row for all users, else `num_slots`.
-- Locks: the jobs that move, in id order, SKIP LOCKED: what an operator holds moves at the next sweep.
-- Indexes: tenantqueue_job_user_line, tenantqueue_job_user_inside, the primary key for the update.
WITH gate AS MATERIALIZED (
    SELECT
        given.key,
        CASE
            WHEN s.paused OR everybody.paused THEN 0
            ELSE coalesce(s.num_slots, everybody.num_slots, %(num_slots)s::integer)
        END AS capacity
    FROM unnest(%(keys)s::text[]) AS given (key)
    LEFT JOIN LATERAL (
        SELECT s.paused, s.num_slots
        FROM tenantqueue_session s
        WHERE s.kind = 'user' AND s.gate_key = given.key
        OFFSET 0
    ) s ON true
    LEFT JOIN LATERAL (
        SELECT s.paused, s.num_slots
        FROM tenantqueue_session s
        WHERE s.kind = 'user' AND s.gate_key = substring(given.key FROM '^(?:[^\\/]|\\.)*/')
        OFFSET 0
    ) everybody ON true
), inside AS MATERIALIZED (
    SELECT gate.key, job.*
    FROM gate
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.run_at, j.state IN ('created', 'held') AS movable
        FROM tenantqueue_job_hot j
        WHERE j.user_key = gate.key
            AND (j.state IN ('created', 'queued', 'running') OR j.held_by = 'exclusive')
        OFFSET 0
    ) job
), line AS MATERIALIZED (
    SELECT gate.key, job.*
    FROM gate
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.run_at
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'user' AND j.user_key = gate.key
        ORDER BY j.user_key, j.priority, j.run_at, j.id
        LIMIT gate.capacity
    ) job
), member AS MATERIALIZED (
    SELECT all_of_it.*,
        row_number() OVER (
            PARTITION BY all_of_it.key ORDER BY all_of_it.priority, all_of_it.run_at, all_of_it.id
        ) AS nth,
        gate.capacity - (
            SELECT count(*) FROM inside WHERE inside.key = gate.key AND NOT inside.movable
        ) AS room
    FROM (
        SELECT inside.key, inside.id, inside.priority, inside.run_at, true AS is_inside
        FROM inside
        WHERE inside.movable
        UNION ALL
        SELECT line.key, line.id, line.priority, line.run_at, false
        FROM line
    ) all_of_it
    JOIN gate ON gate.key = all_of_it.key
), pulled AS MATERIALIZED (
    SELECT member.key, job.id
    FROM member
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        -- held by another gate: it was taken back there after the snapshot
        WHERE j.id = member.id AND (j.state = 'created' OR j.held_by = 'exclusive')
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    WHERE member.is_inside AND member.nth > member.room
), passed AS MATERIALIZED (
    SELECT job.id
    FROM (
        SELECT member.id, member.key, member.nth, member.room, gate.capacity,
            row_number() OVER (PARTITION BY member.key ORDER BY member.nth) AS nth_of_line
        FROM member
        JOIN gate ON gate.key = member.key
        WHERE NOT member.is_inside
    ) next
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = next.id AND j.held_by = 'user'
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    WHERE next.nth <= next.room
        -- one that could not be pulled back keeps its place
        AND next.nth_of_line <= next.capacity
            - (SELECT count(*) FROM inside WHERE inside.key = next.key)
            + (SELECT count(*) FROM pulled WHERE pulled.key = next.key)
), move AS MATERIALIZED (
    SELECT passed.id, true AS passes FROM passed
    UNION ALL
    SELECT pulled.id, false FROM pulled
)
UPDATE tenantqueue_job_hot AS job
SET held_by = CASE
        WHEN NOT move.passes THEN 'user'
        WHEN job.exclusive_key IS NOT NULL THEN 'exclusive'
    END,
    state = CASE
        WHEN NOT move.passes OR job.exclusive_key IS NOT NULL THEN 'held'
        ELSE 'created'
    END
FROM move
WHERE job.id = move.id
    -- not redundant: see finish_jobs.sql
    AND job.id = ANY (ARRAY(SELECT m.id FROM move m))
RETURNING
    job.id, move.passes, job.state, job.user_key, job.exclusive_key, job.lane, job.queue_id,
    job.priority
