-- Monitors: their details in flight, the room for more, and whether all have ended.
gate AS MATERIALIZED (
    SELECT
        m.id, m.priority, m.anchor_id, m.interval_seconds,
        m.cancelled_at IS NOT NULL AS is_cancelled,
        CASE WHEN %(by_tenant)s::boolean THEN 0 ELSE m.priority END AS lane,
        line.is_there AS has_line,
        m.cancelled_at IS NULL AND NOT m.keep_open AND anchor.held_by = 'details'
            AND NOT line.is_there AND (
                SELECT true
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'task' AND j.monitor_id >= m.id AND j.monitor_id <= m.id
                -- so that no other index is as good
                ORDER BY j.monitor_id, j.id
                LIMIT 1
            ) IS NULL AS may_end,
        m.interval_seconds = 0 OR pace.fed_at IS NULL
            OR pace.fed_at + make_interval(secs => m.interval_seconds) <= clock_timestamp()
            AS is_due,
        CASE
            WHEN m.paused OR m.cancelled_at IS NOT NULL OR anchor.held_by = 'session' THEN 0
            WHEN m.stop_after_failures <=
-- include: failed_details
            THEN 0
            ELSE m.parallel
        END AS capacity
    FROM given
    JOIN tenantqueue_concurrentjobmonitor m ON m.id = given.key
    LEFT JOIN tenantqueue_monitorpace pace ON pace.monitor_id = m.id
-- include: anchor
    CROSS JOIN LATERAL (
        -- not EXISTS, which may be answered by reading the lines of all monitors
        SELECT (
            SELECT true
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'monitor' AND j.monitor_id = m.id
            LIMIT 1
        ) IS NOT NULL AS is_there
        OFFSET 0
    ) line
), inside AS MATERIALIZED (
    SELECT
        gate.id AS monitor_id, job.id, job.is_anchor,
        job.movable AND NOT job.is_anchor AND job.nth > gate.capacity AS is_surplus,
        job.movable AND (job.priority <> gate.priority OR job.lane <> gate.lane) AS is_stale
    FROM gate
    CROSS JOIN LATERAL (
        SELECT
            j.id, j.id = gate.anchor_id AS is_anchor, j.worker_id IS NULL AS movable,
            j.priority, j.lane,
            count(*) FILTER (WHERE j.id <> gate.anchor_id) OVER (ORDER BY j.worker_id, j.id) AS nth
        FROM tenantqueue_job_hot j
        WHERE j.monitor_id = gate.id AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
        OFFSET 0
    ) job
), room AS MATERIALIZED (
    SELECT
        gate.id, gate.is_due, gate.has_line,
        gate.capacity - count(inside.id) FILTER (WHERE NOT inside.is_anchor) AS places,
        gate.may_end AND coalesce(bool_and(inside.is_anchor), true) AS may_end
    FROM gate
    LEFT JOIN inside ON inside.monitor_id = gate.id
    GROUP BY gate.id, gate.is_due, gate.has_line, gate.capacity, gate.may_end
)
