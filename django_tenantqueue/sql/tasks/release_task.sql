-- Let jobs leave the line of one task, as many as its cap and its rate let start. They take slots
-- and starts when they are claimed. With `waits`, a job counts for a second after its release.
-- Queues take turns: in each lane the walk starts behind the queue `start` and goes around. It
-- skips a paused queue, and one that has had a released job for longer than a second.
-- `from_*` is where an unfinished walk continues.
-- Locks: the jobs that leave, SKIP LOCKED. take_task_slots.sql keeps the limits. Indexes:
-- tenantqueue_job_task_line, tenantqueue_job_task_inside, the primary key for the update.
WITH RECURSIVE control AS MATERIALIZED (
    SELECT least(
        %(most)s::integer,
        c.num_slots - inside.running - inside.released,
        (
            SELECT CASE WHEN s.starts < s.batch THEN 0 ELSE floor(s.starts)::integer END
            FROM tenantqueue_taskstart s
            WHERE s.control_id = c.id
        ) - inside.released
    ) AS room
    FROM tenantqueue_taskcontrol c
    CROSS JOIN LATERAL (
        SELECT
            count(*) FILTER (WHERE j.state <> 'ready') AS running,
            count(*) FILTER (
                WHERE j.state = 'ready' AND %(waits)s::boolean
                    AND j.task_at > clock_timestamp() - interval '1 second'
            ) AS released
        FROM tenantqueue_job_hot j
        WHERE j.task = %(task)s::text AND j.task_at IS NOT NULL
            AND j.state IN ('ready', 'queued', 'running')
    ) inside
    WHERE c.task = %(task)s::text AND NOT c.paused
        AND (c.num_slots IS NOT NULL OR c.max_per_second IS NOT NULL)
), walk AS (
    SELECT
        %(from_lane)s::integer AS lane, %(from_queue)s::integer AS queue_id,
        %(from_wrapped)s::boolean AS wrapped, 0 AS depth, 0 AS found, 0 AS step
    UNION ALL
    SELECT
        next.lane, next.queue_id, next.wrapped, queue.depth,
        walk.found + (queue.depth > 0)::integer, walk.step + 1
    FROM walk
    CROSS JOIN LATERAL (
        SELECT option.*
        FROM (
            (
                SELECT 1 AS choice, j.lane::integer AS lane, j.queue_id, walk.wrapped
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'task' AND j.task = %(task)s::text AND j.lane = walk.lane
                    AND j.queue_id > walk.queue_id
                    -- a bound of the index: see lock_queues.sql
                    AND j.queue_id
                        <= CASE WHEN walk.wrapped THEN %(start)s::integer ELSE 2147483647 END
                ORDER BY j.task, j.lane, j.queue_id
                LIMIT 1
            )
            UNION ALL
            SELECT 2, walk.lane, 0, true
            WHERE NOT walk.wrapped
            UNION ALL
            (
                SELECT 3, j.lane::integer, %(start)s::integer, false
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'task' AND j.task = %(task)s::text AND j.lane > walk.lane
                ORDER BY j.task, j.lane
                LIMIT 1
            )
        ) option
        ORDER BY option.choice
        LIMIT 1
    ) next
    CROSS JOIN LATERAL (
        -- how many jobs may become ready in this queue
        SELECT coalesce(
            (
                SELECT coalesce(q.num_slots, (SELECT room FROM control))::integer
                FROM tenantqueue_tenantqueue q
                WHERE next.choice = 1 AND q.id = next.queue_id AND NOT q.paused AND NOT EXISTS (
                    SELECT
                    FROM tenantqueue_job_hot j
                    WHERE j.task = %(task)s::text AND j.queue_id = next.queue_id
                        AND j.task_at IS NOT NULL AND j.state = 'ready'
                        AND j.task_at <= clock_timestamp() - interval '1 second'
                )
            ),
            0
        ) AS depth
    ) queue
    WHERE walk.step < %(most_steps)s::integer AND walk.found < (SELECT room FROM control)
), candidate AS MATERIALIZED (
    SELECT
        walk.lane, walk.queue_id, walk.step, job.id,
        row_number() OVER (PARTITION BY walk.step ORDER BY job.priority, job.id) AS turn
    FROM walk
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority
        FROM tenantqueue_job_hot j
        WHERE j.held_by = 'task' AND j.task = %(task)s::text AND j.lane = walk.lane
            AND j.queue_id = walk.queue_id
        ORDER BY j.task, j.lane, j.queue_id, j.priority, j.id
        LIMIT least(walk.depth, (SELECT room FROM control))
    ) job
    WHERE walk.depth > 0
), chosen AS MATERIALIZED (
    SELECT candidate.*
    FROM candidate
    ORDER BY candidate.lane, candidate.turn, candidate.step
    LIMIT greatest(0, (SELECT room FROM control))
), leaving AS MATERIALIZED (
    SELECT job.id
    FROM chosen
    CROSS JOIN LATERAL (
        -- Not "=": an index on held_by would be read for each id when its statistics are old.
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = chosen.id AND j.held_by IS NOT DISTINCT FROM 'task'
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
), released AS (
UPDATE tenantqueue_job_hot AS job
SET task_at = clock_timestamp(),
-- include: leave_task_line
)
SELECT
    (
        SELECT chosen.queue_id
        FROM chosen
        ORDER BY chosen.lane DESC, chosen.turn DESC, chosen.step DESC
        LIMIT 1
    ) AS last_queue,
    walk.lane, walk.queue_id, walk.wrapped, walk.step >= %(most_steps)s::integer AS is_cut,
    (
        SELECT jsonb_agg(jsonb_build_array(id, lane, queue_id, priority, is_ready, gates))
        FROM released
    )::text AS jobs
FROM walk
ORDER BY walk.step DESC
LIMIT 1
