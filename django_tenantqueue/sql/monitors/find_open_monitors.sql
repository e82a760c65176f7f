-- Walk over up to `most` monitors that have unfinished jobs, from `after` on, and say in which of
-- them a release would change something: after a crash or a lost lock, after an UPDATE of a
-- monitor's row, or when an interval is over. `is_cancelled`: its jobs wait to be cancelled.
-- Locks: none. Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside,
-- tenantqueue_job_monitor_aside, tenantqueue_history_monitor for failures.
WITH RECURSIVE step AS (
    SELECT %(after)s::bigint AS id, 0 AS nth
    UNION ALL
    SELECT
        least(
            (
                SELECT min(j.monitor_id)
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'monitor' AND j.monitor_id > step.id
            ), (
                SELECT min(j.monitor_id)
                FROM tenantqueue_job_hot j
                WHERE (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
                    AND j.monitor_id > step.id
            )
        ),
        step.nth + 1
    FROM step
    WHERE step.id IS NOT NULL AND step.nth < %(most)s::integer
), given AS MATERIALIZED (
    SELECT step.id AS key
    FROM step
    WHERE step.nth > 0 AND step.id IS NOT NULL
),
-- include: monitor_room
SELECT
    given.key,
    coalesce(
        room.may_end OR room.is_due AND room.places > 0 AND room.has_line
        OR room.id IN (
            SELECT inside.monitor_id
            FROM inside
            WHERE inside.is_surplus OR inside.is_stale
        ),
        false
    ) AS is_open,
    coalesce(gate.is_cancelled, false) AS is_cancelled
FROM given
-- details whose monitor was deleted are walked over, too: the walk goes on behind its last row
LEFT JOIN room ON room.id = given.key
LEFT JOIN gate ON gate.id = given.key
ORDER BY given.key
