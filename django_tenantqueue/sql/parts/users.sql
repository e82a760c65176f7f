-- Users: their caps, what is inside, and as much of the line as there is room for. A user's cap is
-- that of their row, else that of the tenant's row for all users, else `num_slots`.
gate AS MATERIALIZED (
    SELECT
        given.key, false AS has_rejected,
        CASE
            WHEN s.paused OR everybody.paused THEN 0
            ELSE coalesce(s.num_slots, everybody.num_slots, %(num_slots)s::integer)
        END AS capacity
    FROM given
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
        SELECT
            j.id, j.priority, j.run_at, j.state, j.held_by,
            j.state IN ('created', 'held') AS movable, false AS must_leave
        FROM tenantqueue_job_hot j
        WHERE j.user_key = gate.key
            AND (j.state IN ('created', 'queued', 'running') OR j.held_by = 'exclusive')
        OFFSET 0
    ) job
),
-- include: room
, line AS MATERIALIZED (
    SELECT room.key, job.*
    FROM room
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.run_at
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'user' AND j.user_key = room.key
        ORDER BY j.user_key, j.priority, j.run_at, j.id
        LIMIT greatest(0, room.places)
    ) job
)
