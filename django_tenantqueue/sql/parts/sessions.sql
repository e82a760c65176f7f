-- Sessions: what is inside, and the one job of the line that may go next.
gate AS MATERIALIZED (
    SELECT
        given.key, s.on_wait, false AS has_rejected,
        CASE WHEN s.paused OR s.halted_at IS NOT NULL THEN 0 ELSE 1 END AS capacity
    FROM given
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
            j.id, j.priority, j.run_at, j.state, j.held_by,
            j.attempt = 0 AND j.state IN ('created', 'held') AND j.monitor_id IS NULL AS movable,
            j.state = 'scheduled' AND CASE
                WHEN gate.on_wait <> '' THEN gate.on_wait = 'skip' ELSE j.session_skip
            END AS must_leave
        FROM tenantqueue_job_hot j
        WHERE j.session_key = gate.key
            AND (j.held_by IS NULL OR j.held_by IN ('user', 'exclusive', 'task', 'details'))
        OFFSET 0
    ) job
),
-- include: room
, head AS MATERIALIZED (
    SELECT gate.key, gate.on_wait, job.*
    FROM gate
    JOIN room ON room.key = gate.key
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.run_at, j.session_skip
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'session' AND j.session_key = gate.key
        ORDER BY j.session_key, j.priority, j.run_at, j.id
        LIMIT 1
    ) job
    WHERE room.places > 0
), level AS (
    -- where the head is passed over: the first job of each priority, until one is due
    SELECT head.key, head.on_wait, head.id, head.priority, head.run_at
    FROM head
    WHERE head.run_at > statement_timestamp()
        AND CASE WHEN head.on_wait <> '' THEN head.on_wait = 'skip' ELSE head.session_skip END
    UNION ALL
    SELECT level.key, level.on_wait, next.*
    FROM level
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.run_at
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'session' AND j.session_key = level.key AND j.priority > level.priority
        ORDER BY j.session_key, j.priority, j.run_at, j.id
        LIMIT 1
    ) next
    WHERE level.run_at > statement_timestamp()
), line AS MATERIALIZED (
    SELECT head.key, head.id, head.priority, head.run_at
    FROM head
    WHERE head.run_at <= statement_timestamp()
    UNION ALL
    SELECT level.key, level.id, level.priority, level.run_at
    FROM level
    WHERE level.run_at <= statement_timestamp()
        -- all that comes before it waits for its time, and may be passed over
        AND (
            level.on_wait = 'skip' OR NOT EXISTS (
                SELECT
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'session' AND j.session_key = level.key
                    AND NOT j.session_skip AND j.run_at > j.created_at
                    AND j.priority < level.priority
                OFFSET 0
            )
        )
)
