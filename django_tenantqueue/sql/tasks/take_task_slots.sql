-- Give claimed jobs of paused and capped tasks a slot of their task, in the order of `ids`, or put
-- them into its line. In the line the attempt is not counted, and the claim number stays raised.
-- It follows lock_gates.sql in a READ COMMITTED transaction, so its snapshot sees all slots taken
-- before. Without that lock (`locked` is false) all jobs go into the line.
-- The answer omits a job that was lost, or whose row another session has locked.
-- Fenced by (worker, claim_seq). Locks: the job rows, SKIP LOCKED. Indexes: the primary key,
-- tenantqueue_job_task_inside.
WITH given AS MATERIALIZED (
    SELECT g.*
    FROM unnest(%(ids)s::bigint[], %(seqs)s::integer[]) WITH ORDINALITY AS g (id, claim_seq, nth)
), target AS MATERIALIZED (
    SELECT
        job.id, job.name,
        row_number() OVER (PARTITION BY job.name ORDER BY given.nth) AS nth_of_task
    FROM given
    CROSS JOIN LATERAL (
        SELECT j.id, j.name
        FROM tenantqueue_job_hot j
        WHERE j.id = given.id AND j.claim_seq = given.claim_seq AND j.worker_id = %(worker)s::bigint
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
), control AS MATERIALIZED (
    SELECT
        met.name, c.name IS NULL AS is_open,
        CASE
            WHEN NOT %(locked)s::boolean OR c.paused THEN 0
            WHEN c.num_slots IS NOT NULL THEN c.num_slots - (
                SELECT count(*)
                FROM tenantqueue_job_hot j
                WHERE j.name = met.name AND j.task_at IS NOT NULL
                    AND j.state IN ('queued', 'running')
                    -- a sweep may have counted one of these before: see mark_task_jobs.sql
                    AND j.id <> ALL (ARRAY(SELECT target.id FROM target))
            )
        END AS room
    FROM (SELECT DISTINCT target.name FROM target) met
    LEFT JOIN LATERAL (
        SELECT c.name, c.paused, c.num_slots
        FROM tenantqueue_taskcontrol c
        WHERE c.name = met.name AND (c.paused OR c.num_slots IS NOT NULL)
        OFFSET 0
    ) c ON true
), verdict AS MATERIALIZED (
    SELECT
        judged.id, judged.is_open,
        judged.is_open OR judged.nth_of_task <= judged.room AS is_granted
    FROM (
        -- no join: the planner would expect one row, and read all jobs for each one
        SELECT
            target.id, target.nth_of_task,
            (SELECT control.is_open FROM control WHERE control.name = target.name) AS is_open,
            (SELECT control.room FROM control WHERE control.name = target.name) AS room
        FROM target
        OFFSET 0
    ) judged
), settled AS (
    UPDATE tenantqueue_job_hot AS job
    SET state = CASE WHEN verdict.is_granted THEN job.state ELSE 'held' END,
        held_by = CASE WHEN NOT verdict.is_granted THEN 'task' END,
        task_at = CASE WHEN verdict.is_granted AND NOT verdict.is_open THEN clock_timestamp() END,
        worker_id = CASE WHEN verdict.is_granted THEN job.worker_id END,
        queued_at = CASE WHEN verdict.is_granted THEN job.queued_at END,
        attempt = CASE WHEN verdict.is_granted THEN job.attempt ELSE job.attempt - 1 END
    FROM verdict
    WHERE job.id = verdict.id
        -- not redundant: see finish_jobs.sql
        AND job.id = ANY (%(ids)s::bigint[])
    RETURNING job.id, job.queue_id, verdict.is_granted, verdict.is_open
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
)
SELECT settled.id, settled.is_granted, settled.is_open
FROM settled
