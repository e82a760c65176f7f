-- Give claimed jobs a slot and a start of their tasks, in the order of `ids`, or put them into the
-- lines. A job of a task with a rate comes behind those of its queue in the line. In the line the
-- attempt is not counted, and the claim number stays raised.
-- It follows lock_gates.sql in a READ COMMITTED transaction, so its snapshot sees all that was
-- taken before. Without that lock (`locked` is false) all jobs go into the line.
-- The answer omits a job that was lost or locked. Fenced by (worker, claim_seq). Locks: the job
-- rows, SKIP LOCKED. Indexes: the primary key, tenantqueue_job_task_inside,
-- tenantqueue_job_task_line.
WITH given AS MATERIALIZED (
    SELECT g.*
    FROM unnest(%(ids)s::bigint[], %(seqs)s::integer[]) WITH ORDINALITY AS g (id, claim_seq, nth)
), met AS MATERIALIZED (
    SELECT job.*, given.nth
    FROM given
    CROSS JOIN LATERAL (
        SELECT j.id, j.task, j.lane, j.queue_id, j.priority
        FROM tenantqueue_job_hot j
        WHERE j.id = given.id AND j.claim_seq = given.claim_seq AND j.worker_id = %(worker)s::bigint
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
), rate AS MATERIALIZED (
    SELECT s.*
    FROM (SELECT DISTINCT met.task FROM met) one
    CROSS JOIN LATERAL (
        SELECT s.*
        FROM tenantqueue_taskstart s
        WHERE s.task = one.task
        OFFSET 0
    ) s
), target AS MATERIALIZED (
    SELECT
        job.id, job.task, job.is_behind,
        row_number() OVER (PARTITION BY job.task, job.is_behind ORDER BY job.nth) AS nth_of_task
    FROM (
        SELECT
            met.id, met.task, met.nth,
            met.task = ANY (ARRAY(SELECT rate.task FROM rate)) AND EXISTS (
                SELECT
                FROM tenantqueue_job_hot j
                WHERE j.held_by = 'task' AND j.task = met.task AND j.lane = met.lane
                    AND j.queue_id = met.queue_id AND (j.priority, j.id) < (met.priority, met.id)
                OFFSET 0
            ) AS is_behind
        FROM met
        OFFSET 0
    ) job
), control AS MATERIALIZED (
    SELECT
        one.task, c.task IS NULL AS is_open,
        CASE
            WHEN NOT %(locked)s::boolean OR c.paused THEN 0
            ELSE least(
                CASE WHEN c.num_slots IS NOT NULL THEN c.num_slots - (
                    SELECT count(*)
                    FROM tenantqueue_job_hot j
                    WHERE j.task = one.task AND j.task_at IS NOT NULL
                        AND j.state IN ('queued', 'running')
                        -- a sweep may have counted one of these before: see mark_task_jobs.sql
                        AND j.id <> ALL (ARRAY(SELECT met.id FROM met))
                ) END,
                (SELECT floor(rate.starts)::integer FROM rate WHERE rate.task = one.task)
            )
        END AS room
    FROM (SELECT DISTINCT met.task FROM met) one
    LEFT JOIN LATERAL (
        SELECT c.task, c.paused, c.num_slots
        FROM tenantqueue_taskcontrol c
        WHERE c.task = one.task
            AND (c.paused OR c.num_slots IS NOT NULL OR c.max_per_second IS NOT NULL)
        OFFSET 0
    ) c ON true
), verdict AS MATERIALIZED (
    SELECT
        judged.id, judged.is_open, judged.as_of,
        judged.is_open OR NOT judged.is_behind AND judged.nth_of_task <= judged.room AS is_granted
    FROM (
        -- no join: the planner would expect one row, and read all jobs for each one
        SELECT
            target.id, target.nth_of_task, target.is_behind,
            (SELECT control.is_open FROM control WHERE control.task = target.task) AS is_open,
            (SELECT control.room FROM control WHERE control.task = target.task) AS room,
            (SELECT rate.as_of FROM rate WHERE rate.task = target.task) AS as_of
        FROM target
        OFFSET 0
    ) judged
), verdicts AS MATERIALIZED (
    SELECT
        array_agg(v.id ORDER BY v.id) AS ids, array_agg(v.is_granted ORDER BY v.id) AS granted,
        array_agg(v.is_open ORDER BY v.id) AS open, array_agg(v.as_of ORDER BY v.id) AS as_of
    FROM verdict v
), settled AS (
    UPDATE tenantqueue_job_hot AS job
    SET (state, held_by, task_at, worker_id, queued_at, attempt) = (
        SELECT
            CASE WHEN verdict.is_granted THEN job.state ELSE 'held' END,
            CASE WHEN NOT verdict.is_granted THEN 'task' END,
            CASE WHEN verdict.is_granted AND NOT verdict.is_open THEN clock_timestamp() END,
            CASE WHEN verdict.is_granted THEN job.worker_id END,
            -- with a rate, the moment that it counts with
            CASE WHEN verdict.is_granted THEN coalesce(verdict.as_of, job.queued_at) END,
            CASE WHEN verdict.is_granted THEN job.attempt ELSE job.attempt - 1 END
        FROM (
            SELECT
                verdicts.granted[given.nth] AS is_granted, verdicts.open[given.nth] AS is_open,
                verdicts.as_of[given.nth]
            FROM verdicts
            CROSS JOIN LATERAL (SELECT width_bucket(job.id, verdicts.ids) AS nth OFFSET 0) given
        ) verdict
    )
    -- by arrays: see finish_jobs.sql
    WHERE job.id = ANY ((SELECT verdicts.ids FROM verdicts)::bigint[])
    RETURNING
        job.id, job.task, job.queue_id, job.held_by IS NULL AS is_granted,
        job.held_by IS NULL AND job.task_at IS NULL AS is_open
), returned AS (
    UPDATE tenantqueue_queuerate AS rate
    SET debt = greatest(0, rate.debt - held.jobs)
    FROM (
        SELECT settled.queue_id, count(*) AS jobs
        FROM settled
        WHERE NOT settled.is_granted
        GROUP BY settled.queue_id
    ) held
    WHERE rate.queue_id = held.queue_id
), start AS MATERIALIZED (
    SELECT rate.*, granted.jobs
    FROM rate
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE settled.is_granted) AS jobs
        FROM settled
        WHERE settled.task = rate.task
    ) granted
), spent AS (
    INSERT INTO tenantqueue_taskrate AS stored (control_id, debt, as_of)
    SELECT start.control_id, start.owed + start.jobs, start.as_of
    FROM start
    WHERE start.jobs > 0
    ON CONFLICT (control_id) DO UPDATE SET debt = excluded.debt, as_of = excluded.as_of
)
SELECT
    settled.id, settled.is_granted, settled.is_open,
    (
        SELECT greatest(0, (start.batch - start.starts + start.jobs) / start.max_per_second)
        FROM start
        WHERE start.task = settled.task
    )::float8 AS due_seconds
FROM settled
