-- Which jobs stand on the wrong side of the gates `given`, all of one `kind`. Inside belong as many
-- as the capacity allows, the first by (priority, run_at, id). The limit of a user is that of their
-- row, else that of the tenant's row for all users, else `user_slots`.
-- include: gate_jobs
, gate AS MATERIALIZED (
    SELECT
        given.key, s.id AS session_id, s.on_wait,
        CASE
            WHEN s.paused OR s.halted_at IS NOT NULL OR for_all.paused THEN 0
            WHEN %(kind)s::text = 'limit_user'
                THEN coalesce(s.num_slots, for_all.num_slots, %(user_slots)s::integer)
            ELSE 1
        END AS capacity
    FROM given
    LEFT JOIN LATERAL (
        SELECT s.id, s.paused, s.halted_at, s.on_wait, s.num_slots
        FROM tenantqueue_session s
        WHERE s.kind = replace(%(kind)s::text, 'session', 'serial') AND s.gate_key = given.key
        OFFSET 0
    ) s ON true
    LEFT JOIN LATERAL (
        SELECT s.paused, s.num_slots
        FROM tenantqueue_session s
        WHERE %(kind)s::text = 'limit_user' AND s.kind = 'limit_user'
            AND s.gate_key = substring(given.key FROM E'^(?:[^\\\\/]|\\\\.)*/')
        OFFSET 0
    ) for_all ON true
), inside AS MATERIALIZED (
    SELECT gate.key, job.*
    FROM gate
    CROSS JOIN LATERAL (
        SELECT
            i.id, i.priority, i.run_at, i.state, i.held_by,
            i.may_return AND i.state IN ('ready', 'held') AS movable,
            i.state = 'scheduled' AND CASE
                WHEN gate.on_wait <> '' THEN gate.on_wait = 'skip' ELSE i.session_skip
            END AS must_leave
        FROM inside_job i
        WHERE i.kind = %(kind)s::text AND i.key = gate.key
        OFFSET 0
    ) job
), room AS MATERIALIZED (
    SELECT
        gate.key, gate.on_wait,
        gate.capacity - count(inside.id) FILTER (WHERE NOT inside.movable AND NOT inside.must_leave)
            AS places
    FROM gate
    LEFT JOIN inside ON inside.key = gate.key
    GROUP BY gate.key, gate.on_wait, gate.capacity
), line AS MATERIALIZED (
    SELECT
        room.key, room.on_wait, job.*,
        %(kind)s::text <> 'session' OR job.run_at <= statement_timestamp() AS is_due
    FROM room
    CROSS JOIN LATERAL (
        (
            SELECT j.id, j.priority, j.run_at, j.session_skip
            FROM tenantqueue_job_hot j
            WHERE %(kind)s::text = 'session' AND j.held_by = 'session' AND j.session_key = room.key
            ORDER BY j.session_key, j.priority, j.run_at, j.id
            LIMIT greatest(0, room.places)
        )
        UNION ALL
        (
            SELECT j.id, j.priority, j.run_at, j.session_skip
            FROM tenantqueue_job_hot j
            WHERE %(kind)s::text = 'limit_user' AND j.held_by = 'limit_user'
                AND j.limit_user = room.key
            ORDER BY j.limit_user, j.priority, j.run_at, j.id
            LIMIT greatest(0, room.places)
        )
        UNION ALL
        (
            SELECT j.id, j.priority, j.run_at, j.session_skip
            FROM tenantqueue_job_hot j
            WHERE %(kind)s::text = 'exclusive' AND j.held_by = 'exclusive'
                AND j.exclusive_key = room.key
            ORDER BY j.exclusive_key, j.priority, j.run_at, j.id
            LIMIT greatest(0, room.places)
        )
    ) job
), level AS (
    -- where the head of a session is skipped: the first job of each priority, until one is due
    SELECT line.key, line.on_wait, line.id, line.priority, line.run_at
    FROM line
    WHERE NOT line.is_due
        AND CASE WHEN line.on_wait <> '' THEN line.on_wait = 'skip' ELSE line.session_skip END
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
), next_in_line AS MATERIALIZED (
    SELECT line.key, line.id, line.priority, line.run_at
    FROM line
    WHERE line.is_due
    UNION ALL
    SELECT level.key, level.id, level.priority, level.run_at
    FROM level
    WHERE level.run_at <= statement_timestamp()
        -- all that comes before it waits for its time, and may be skipped
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
), misplaced AS MATERIALIZED (
    SELECT member.*
    FROM (
        SELECT
            both_sides.*,
            row_number() OVER (
                PARTITION BY both_sides.key, both_sides.must_leave
                ORDER BY both_sides.priority, both_sides.run_at, both_sides.id
            ) AS nth
        FROM (
            SELECT
                inside.key, inside.id, inside.priority, inside.run_at, inside.state, inside.held_by,
                inside.must_leave, true AS is_inside
            FROM inside
            WHERE inside.movable OR inside.must_leave
            UNION ALL
            SELECT n.key, n.id, n.priority, n.run_at, 'held', %(kind)s::text, false, false
            FROM next_in_line n
        ) both_sides
    ) member
    JOIN room ON room.key = member.key
    WHERE member.must_leave OR member.is_inside <> (member.nth <= room.places)
)
