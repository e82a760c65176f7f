-- Feed details of monitors up to `parallel`, take back those that are too many, and give unclaimed
-- ones the priority of their monitor: see monitors.md, "Feeding". Runs after lock_gates.sql, or
-- after try_gates.sql if `keys` is NULL, in the same READ COMMITTED transaction.
-- A row in state 'done' names a monitor that seems to have no details left.
-- Locks: the jobs that move, SKIP LOCKED; the rows of tenantqueue_monitorpace.
-- Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside,
-- tenantqueue_job_monitor_aside, tenantqueue_history_monitor for failures, the primary key for the
-- update.
WITH given AS MATERIALIZED (
    SELECT unnest(
        coalesce(
            %(keys)s::text[],
            -- empty after the transaction that set it, when a plan is made
            nullif(current_setting('tenantqueue.gates', true), '')::text[]
        )
    )::bigint AS key
),
-- include: monitor_room
, changed AS MATERIALIZED (
    SELECT inside.monitor_id, job.id, CASE WHEN inside.is_surplus THEN false END AS passes
    FROM inside
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = inside.id AND j.worker_id IS NULL
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    WHERE inside.is_surplus OR inside.is_stale
), fed AS MATERIALIZED (
    SELECT room.id AS monitor_id, job.id
    FROM room
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        -- not "=": then the order would be that of the primary key, too, which holds all other jobs
        WHERE j.held_by = 'monitor' AND j.monitor_id >= room.id AND j.monitor_id <= room.id
        ORDER BY j.monitor_id, j.id
        LIMIT greatest(room.places, 0)
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
    WHERE room.is_due AND room.places > 0
), paced AS (
    INSERT INTO tenantqueue_monitorpace AS pace (monitor_id, fed_at)
    SELECT gate.id, clock_timestamp()
    FROM gate
    WHERE gate.interval_seconds > 0 AND gate.is_due AND gate.capacity > 0
    ON CONFLICT (monitor_id) DO UPDATE
    SET fed_at = (
        SELECT pace.fed_at + make_interval(
            secs => m.interval_seconds
                * floor(extract(epoch FROM excluded.fed_at - pace.fed_at) / m.interval_seconds)
        )
        FROM tenantqueue_concurrentjobmonitor m
        WHERE m.id = excluded.monitor_id
    )
), move AS MATERIALIZED (
    SELECT fed.id, fed.monitor_id, true AS passes FROM fed
    UNION ALL
    SELECT changed.id, changed.monitor_id, changed.passes FROM changed
), moves AS MATERIALIZED (
    SELECT
        array_agg(move.id ORDER BY move.id) AS ids,
        array_agg(move.passes ORDER BY move.id) AS passes,
        array_agg(gate.priority ORDER BY move.id) AS priorities,
        array_agg(gate.lane ORDER BY move.id) AS lanes
    FROM move
    JOIN gate ON gate.id = move.monitor_id
), moved AS (
    UPDATE tenantqueue_job_hot AS job
    SET (held_by, state, priority, lane) = (
        SELECT
            CASE
                WHEN move.passes IS NULL THEN job.held_by
                WHEN NOT move.passes THEN 'monitor'
                WHEN job.run_at > clock_timestamp() THEN NULL
                WHEN job.limit_user IS NOT NULL THEN 'limit_user'
                WHEN job.exclusive_key IS NOT NULL THEN 'exclusive'
            END,
            CASE
                WHEN move.passes IS NULL THEN job.state
                WHEN NOT move.passes THEN 'held'
                WHEN job.run_at > clock_timestamp() THEN 'scheduled'
                WHEN job.limit_user IS NOT NULL OR job.exclusive_key IS NOT NULL THEN 'held'
                ELSE 'ready'
            END,
            move.priority,
            move.lane
        FROM (
            SELECT
                moves.passes[given.nth], moves.priorities[given.nth] AS priority,
                moves.lanes[given.nth] AS lane
            FROM moves
            CROSS JOIN LATERAL (SELECT width_bucket(job.id, moves.ids) AS nth OFFSET 0) given
        ) move
    )
    -- by arrays: see finish_jobs.sql
    WHERE job.id = ANY ((SELECT moves.ids FROM moves)::bigint[])
    RETURNING
        job.id,
        coalesce(
            (SELECT moves.passes[width_bucket(job.id, moves.ids)] FROM moves), false
        ) AS passes,
        job.state, job.session_key, job.limit_user,
        job.exclusive_key, job.monitor_id::text, job.lane, job.queue_id, job.priority
)
SELECT moved.*
FROM moved
UNION ALL
SELECT NULL, false, 'done', NULL, NULL, NULL, room.id::text, NULL, NULL, NULL
FROM room
WHERE room.may_end
