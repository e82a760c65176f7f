-- Walk over up to `most` monitors that have unfinished jobs, from `after` on, and say in which of them a
-- release would change something: what a crash or a lock has kept from its release is found here, what
-- somebody has changed in a monitor's row, and what an interval makes due. A monitor without details
-- has an anchor. `is_cancelled`: what it still has waits to be cancelled.
-- Locks: none. Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside,
-- tenantqueue_job_monitor_aside,
-- tenantqueue_history_monitor for failures.
WITH RECURSIVE step AS (
    SELECT least(
        (
            SELECT j.monitor_id
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'monitor' AND j.monitor_id > %(after)s::bigint
            ORDER BY j.monitor_id
            LIMIT 1
        ),
        (
            SELECT j.monitor_id
            FROM tenantqueue_job_hot j
            WHERE j.monitor_id > %(after)s::bigint AND j.monitor_id IS NOT NULL
                AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
            ORDER BY j.monitor_id
            LIMIT 1
        )
    ) AS id, 1 AS nth
    UNION ALL
    SELECT least(
        (
            SELECT j.monitor_id
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'monitor' AND j.monitor_id > step.id
            ORDER BY j.monitor_id
            LIMIT 1
        ),
        (
            SELECT j.monitor_id
            FROM tenantqueue_job_hot j
            WHERE j.monitor_id > step.id AND j.monitor_id IS NOT NULL
                AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
            ORDER BY j.monitor_id
            LIMIT 1
        )
    ), step.nth + 1
    FROM step
    WHERE step.id IS NOT NULL AND step.nth < %(most)s::integer
)
SELECT
    step.id,
    inside.is_stale
    OR (inside.jobs > gate.capacity AND inside.movable > 0)
    OR (
        line.is_there AND inside.jobs < gate.capacity
        AND (
            m.interval = 0 OR pace.fed_at IS NULL
            OR pace.fed_at + make_interval(secs => m.interval) <= clock_timestamp()
        )
    )
    OR (
        NOT line.is_there AND inside.jobs = 0 AND inside.waits_for_details
        AND m.cancelled_at IS NULL AND NOT m.keep_open
        AND (
            SELECT true
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'task' AND j.monitor_id >= m.id AND j.monitor_id <= m.id
            -- so that no other index is as good
            ORDER BY j.monitor_id, j.id
            LIMIT 1
        ) IS NULL
    ) AS is_open,
    m.cancelled_at IS NOT NULL AS is_cancelled
FROM step
-- details whose monitor was deleted are walked over, too: the walk goes on behind its last row
LEFT JOIN tenantqueue_concurrentjobmonitor m ON m.id = step.id
LEFT JOIN tenantqueue_monitorpace pace ON pace.monitor_id = m.id
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE j.id <> m.anchor_id) AS jobs,
        count(*) FILTER (WHERE j.id <> m.anchor_id AND j.worker_id IS NULL) AS movable,
        coalesce(
            bool_or(
                j.worker_id IS NULL AND (
                    j.priority <> m.priority
                    OR j.lane <> CASE WHEN %(by_tenant)s::boolean THEN 0 ELSE m.priority END
                )
            ),
            false
        ) AS is_stale,
        coalesce(bool_or(j.held_by = 'details'), false) AS waits_for_details,
        coalesce(bool_or(j.held_by = 'session' AND j.id = m.anchor_id), false) AS waits_for_session
    FROM tenantqueue_job_hot j
    WHERE j.monitor_id = m.id AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
) inside
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
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN m.paused OR m.cancelled_at IS NOT NULL OR inside.waits_for_session THEN 0
        WHEN m.stop_after_failures <= (
            SELECT count(*)
            FROM (
                SELECT
                FROM tenantqueue_job_history j
                WHERE j.monitor_id = m.id AND j.state = 'error' AND j.id <> m.anchor_id
                LIMIT coalesce(m.stop_after_failures, 0)
            ) failure
        ) THEN 0
        ELSE m.parallel
    END AS capacity
) gate
WHERE step.id IS NOT NULL
ORDER BY step.nth
