-- Count the jobs that were claimed before their task was paused or capped: they take slots of it. A control
-- has settled once this has been done `settle_seconds` after it was first seen here: no claim is under
-- way any more that could not see it. A capped task starts nothing in between.
-- Locks: the controls and the jobs, SKIP LOCKED; a job that is left out keeps its control unsettled.
-- Index: tenantqueue_job_slots, read once whole for each control that has not settled.
WITH control AS MATERIALIZED (
    SELECT
        c.id, c.name,
        coalesce(c.seen_at, statement_timestamp())
            <= statement_timestamp() - make_interval(secs => %(settle_seconds)s::float8) AS is_over
    FROM tenantqueue_taskcontrol c
    WHERE c.settled_at IS NULL AND (c.paused OR c.num_slots IS NOT NULL)
    ORDER BY c.id
    FOR NO KEY UPDATE SKIP LOCKED
), active AS MATERIALIZED (
    SELECT control.id AS control_id, job.id
    FROM control
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.state IN ('queued', 'running') AND j.name = control.name AND j.task_at IS NULL
        OFFSET 0
    ) job
), locked AS MATERIALIZED (
    SELECT job.id
    FROM active
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = active.id AND j.state IN ('queued', 'running')
        FOR NO KEY UPDATE SKIP LOCKED
    ) job
), marked AS (
    UPDATE tenantqueue_job_hot AS job
    SET task_at = clock_timestamp()
    FROM locked
    WHERE job.id = locked.id
        -- not redundant: see finish_jobs.sql
        AND job.id = ANY (ARRAY(SELECT l.id FROM locked l))
    RETURNING job.id
)
UPDATE tenantqueue_taskcontrol AS task_control
SET seen_at = coalesce(task_control.seen_at, statement_timestamp()),
    settled_at = CASE
        WHEN control.is_over AND NOT EXISTS (
            SELECT
            FROM active
            WHERE active.control_id = control.id AND active.id NOT IN (SELECT marked.id FROM marked)
        ) THEN statement_timestamp()
    END
FROM control
WHERE task_control.id = control.id
RETURNING task_control.name
