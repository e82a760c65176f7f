-- Exclusive keys: what is inside, and the first job of the line. `has_rejected`: one that does not
-- wait is in the line.
gate AS MATERIALIZED (
    SELECT
        given.key, 1 AS capacity,
        coalesce(
            (
                SELECT true
                FROM tenantqueue_job_hot j
                WHERE j.exclusive_key = given.key AND j.held_by = 'exclusive'
                    AND j.unique_mode = 'while_executing_reject' AND j.attempt = 0
                LIMIT 1
            ),
            false
        ) AS has_rejected
    FROM given
), inside AS MATERIALIZED (
    SELECT gate.key, job.*
    FROM gate
    CROSS JOIN LATERAL (
        SELECT
            j.id, j.priority, j.run_at, j.state, j.held_by,
            j.state = 'created' AS movable, false AS must_leave
        FROM tenantqueue_job_hot j
        WHERE j.exclusive_key = gate.key AND j.state IN ('created', 'queued', 'running')
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
        WHERE j.held_by = 'exclusive' AND j.exclusive_key = room.key
        ORDER BY j.exclusive_key, j.priority, j.run_at, j.id
        LIMIT greatest(0, room.places)
    ) job
)
