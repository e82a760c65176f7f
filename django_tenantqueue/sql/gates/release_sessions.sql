-- Let the next job of sessions through, and take back one that is no longer next.
-- Third statement of a release, after lock_gates.sql and make_sessions.sql of the same READ COMMITTED
-- transaction: its snapshot then sees what earlier releases of these sessions let through.
--
-- One job of a session is inside. Next is the first by (priority, run_at, id). A head that waits
-- for its time blocks the session, or, if it is to be overtaken, lets the first job go that is due,
-- unless one that blocks comes before that. A job that is inside and was never claimed goes back
-- when a more urgent one is in the line, or when the session is paused or halted; one that waits
-- for another attempt, when it is to be overtaken. A job of a session that has a monitor is that
-- monitor's anchor: it keeps its turn until it has ended.
-- Locks: the jobs that move, in id order, SKIP LOCKED: what an operator holds moves at the next sweep.
-- Indexes: tenantqueue_job_session_line, tenantqueue_job_session_inside,
-- tenantqueue_job_session_block, the primary key for the update.
WITH RECURSIVE gate AS MATERIALIZED (
    SELECT
        given.key, s.on_wait,
        CASE WHEN s.paused OR s.halted_at IS NOT NULL THEN 0 ELSE 1 END AS capacity
    FROM unnest(%(keys)s::text[]) AS given (key)
    LEFT JOIN LATERAL (
        SELECT s.paused, s.halted_at, s.on_wait
        FROM tenantqueue_session s
        WHERE s.kind = 'serial' AND s.gate_key = given.key
        OFFSET 0
    ) s ON true
), inside AS MATERIALIZED (
    SELECT gate.key, job.*
    FROM gate
    CROSS JOIN LATERAL (
        SELECT
            j.id, j.priority, j.run_at,
            j.attempt = 0 AND j.state IN ('created', 'held') AND j.monitor_id IS NULL AS movable,
            j.state = 'scheduled' AND CASE
                WHEN gate.on_wait <> '' THEN gate.on_wait = 'skip' ELSE j.session_skip
            END AS is_overtaken
        FROM tenantqueue_job_hot j
        WHERE j.session_key = gate.key AND (j.held_by IS NULL OR j.held_by IN ('user', 'exclusive', 'task', 'details'))
        OFFSET 0
    ) job
), head AS MATERIALIZED (
    SELECT gate.key, gate.on_wait, job.*
    FROM gate
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.run_at, j.session_skip
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'session' AND j.session_key = gate.key
        ORDER BY j.session_key, j.priority, j.run_at, j.id
        LIMIT 1
    ) job
    WHERE gate.capacity > 0
), level AS (
    -- the priorities of a line whose head is overtaken: the first job of each is the only one to look at
    SELECT head.key, head.priority
    FROM head
    WHERE head.run_at > statement_timestamp()
        AND CASE WHEN head.on_wait <> '' THEN head.on_wait = 'skip' ELSE head.session_skip END
    UNION ALL
    SELECT level.key, next.priority
    FROM level
    CROSS JOIN LATERAL (
        SELECT j.priority
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'session' AND j.session_key = level.key AND j.priority > level.priority
        ORDER BY j.session_key, j.priority
        LIMIT 1
    ) next
), line AS MATERIALIZED (
    SELECT head.key, head.id, head.priority, head.run_at
    FROM head
    WHERE head.run_at <= statement_timestamp()
    UNION ALL
    (
        SELECT DISTINCT ON (level.key) level.key, job.*
        FROM level
        CROSS JOIN LATERAL (
            SELECT j.id, j.priority, j.run_at
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'session' AND j.session_key = level.key
                AND j.priority = level.priority
            ORDER BY j.session_key, j.priority, j.run_at, j.id
            LIMIT 1
        ) job
        JOIN gate ON gate.key = level.key
        WHERE job.run_at <= statement_timestamp()
            -- all that is better in the line waits for its time
            AND (
                gate.on_wait = 'skip' OR NOT EXISTS (
                    SELECT
                    FROM tenantqueue_job_hot j
                    WHERE j.held_by = 'session' AND j.session_key = level.key
                        AND NOT j.session_skip AND j.run_at > j.created_at
                        AND j.priority < level.priority
                    OFFSET 0
                )
            )
        ORDER BY level.key, level.priority
    )
), member AS MATERIALIZED (
    SELECT all_of_it.*,
        row_number() OVER (
            PARTITION BY all_of_it.key ORDER BY all_of_it.priority, all_of_it.run_at, all_of_it.id
        ) AS nth,
        gate.capacity - (
            SELECT count(*) FROM inside WHERE inside.key = gate.key AND NOT inside.movable AND NOT inside.is_overtaken
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
    SELECT surplus.key, job.id
    FROM (
        SELECT member.key, member.id
        FROM member
        WHERE member.is_inside AND member.nth > member.room
        UNION ALL
        SELECT inside.key, inside.id
        FROM inside
        WHERE inside.is_overtaken
    ) surplus
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = surplus.id
            AND (
                j.state = 'scheduled'
                OR j.attempt = 0 AND (j.state = 'created' OR j.held_by IN ('user', 'exclusive', 'task'))
            )
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
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
        WHERE j.id = next.id AND j.held_by = 'session'
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
        WHEN NOT move.passes THEN 'session'
        WHEN job.monitor_id IS NOT NULL THEN 'details'
        WHEN job.user_key IS NOT NULL THEN 'user'
        WHEN job.exclusive_key IS NOT NULL THEN 'exclusive'
    END,
    state = CASE
        WHEN NOT move.passes OR job.monitor_id IS NOT NULL THEN 'held'
        WHEN job.user_key IS NOT NULL OR job.exclusive_key IS NOT NULL THEN 'held'
        ELSE 'created'
    END
FROM move
WHERE job.id = move.id
    -- not redundant: see finish_jobs.sql
    AND job.id = ANY (ARRAY(SELECT m.id FROM move m))
RETURNING
    job.id, move.passes, job.state, job.user_key, job.exclusive_key, job.lane, job.queue_id,
    job.priority, job.monitor_id::text
