-- Let jobs from the line of one capped task go, as many as it has free slots: back to the gate of their
-- monitor, user or exclusive key, or they become ready. They take their slots when they are claimed. What was made ready before and is not claimed counts for
-- `wait_seconds`, if that is not null. Nothing happens when the task has no cap, or is paused.
--
-- Queues take turns: the walk goes over the queues of each lane, from the one behind `start` on and around.
-- A paused queue is passed over, and one in which a job has been ready for longer than a second: it must
-- not keep the slots from the others. `from_…` is where an unfinished walk goes on.
-- Locks: the jobs that become ready, SKIP LOCKED. No other lock is needed: the cap is kept by
-- take_task_slots.sql.
-- Indexes: tenantqueue_job_task_line, tenantqueue_job_task_inside, the primary key for the update.
WITH RECURSIVE control AS MATERIALIZED (
    SELECT least(
        %(most)s::integer,
        c.num_slots - (
            SELECT count(*)
            FROM tenantqueue_job_hot j
            WHERE j.name = %(name)s::text AND j.task_at IS NOT NULL
                AND j.state IN ('created', 'queued', 'running')
                AND (
                    j.state <> 'created'
                    OR j.task_at > clock_timestamp() - make_interval(secs => %(wait_seconds)s::float8)
                )
        )
    ) AS room
    FROM tenantqueue_taskcontrol c
    WHERE c.name = %(name)s::text AND c.num_slots IS NOT NULL AND NOT c.paused
        AND c.settled_at IS NOT NULL
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
                WHERE j.held_by = 'task' AND j.name = %(name)s::text AND j.lane = walk.lane
                    AND j.queue_id > walk.queue_id
                    -- a bound of the index: see lock_queues.sql
                    AND j.queue_id
                        <= CASE WHEN walk.wrapped THEN %(start)s::integer ELSE 2147483647 END
                ORDER BY j.name, j.lane, j.queue_id
                LIMIT 1
            )
            UNION ALL
            SELECT 2, walk.lane, 0, true
            WHERE NOT walk.wrapped
            UNION ALL
            (
                SELECT 3, j.lane::integer, %(start)s::integer, false
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'task' AND j.name = %(name)s::text AND j.lane > walk.lane
                ORDER BY j.name, j.lane
                LIMIT 1
            )
        ) option
        ORDER BY option.choice
        LIMIT 1
    ) next
    CROSS JOIN LATERAL (
        -- so many jobs may become ready in it; a step that comes to no queue finds none
        SELECT coalesce(
            (
                SELECT coalesce(q.num_slots, (SELECT room FROM control))::integer
                FROM tenantqueue_tenantqueue q
                WHERE next.choice = 1 AND q.id = next.queue_id AND NOT q.paused AND NOT EXISTS (
                    SELECT
                    FROM tenantqueue_job_hot j
                    WHERE j.name = %(name)s::text AND j.queue_id = next.queue_id
                        AND j.task_at IS NOT NULL AND j.state = 'created'
                        AND j.state IN ('created', 'queued', 'running')
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
        WHERE j.held_by = 'task' AND j.name = %(name)s::text AND j.lane = walk.lane
            AND j.queue_id = walk.queue_id
        ORDER BY j.name, j.lane, j.queue_id, j.priority, j.id
        LIMIT least(walk.depth, (SELECT room FROM control))
    ) job
    WHERE walk.depth > 0
), chosen AS MATERIALIZED (
    SELECT candidate.*
    FROM candidate
    ORDER BY candidate.lane, candidate.turn, candidate.step
    LIMIT greatest(0, (SELECT room FROM control))
), locked AS MATERIALIZED (
    SELECT job.id, job.gate, chosen.lane, chosen.turn, chosen.step, chosen.queue_id
    FROM chosen
    CROSS JOIN LATERAL (
        SELECT j.id, CASE
            WHEN j.monitor_id IS NOT NULL AND j.id <> (
                SELECT m.anchor_id
                FROM tenantqueue_concurrentjobmonitor m
                WHERE m.id = j.monitor_id
            ) THEN 'monitor'
            WHEN j.user_key IS NOT NULL THEN 'user'
            WHEN j.exclusive_key IS NOT NULL THEN 'exclusive'
        END AS gate
        FROM tenantqueue_job_hot j
        WHERE j.id = chosen.id AND j.held_by = 'task'
        FOR NO KEY UPDATE OF j SKIP LOCKED
    ) job
), released AS (
    UPDATE tenantqueue_job_hot AS job
    SET state = CASE WHEN locked.gate IS NULL THEN 'created' ELSE 'held' END,
        held_by = locked.gate,
        task_at = clock_timestamp()
    FROM locked
    WHERE job.id = locked.id
        -- not redundant: see finish_jobs.sql
        AND job.id = ANY (ARRAY(SELECT l.id FROM locked l))
    RETURNING
        job.id, job.lane, job.queue_id, job.priority, job.state,
        jsonb_build_array(
            CASE WHEN locked.gate = 'monitor' THEN job.monitor_id::text END, NULL,
            CASE WHEN locked.gate = 'user' THEN job.user_key END,
            CASE WHEN locked.gate = 'exclusive' THEN job.exclusive_key END
        )::text AS gates
)
SELECT
    (
        SELECT locked.queue_id
        FROM locked
        ORDER BY locked.lane DESC, locked.turn DESC, locked.step DESC
        LIMIT 1
    ) AS last_queue,
    walk.lane, walk.queue_id, walk.wrapped, walk.step >= %(most_steps)s::integer AS is_cut,
    (
        SELECT array_agg(ARRAY[id, lane, queue_id, priority]) FROM released WHERE state = 'created'
    ) AS places,
    (SELECT array_agg(gates) FROM released WHERE state = 'held') AS gates
FROM walk
ORDER BY walk.step DESC
LIMIT 1
