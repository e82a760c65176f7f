-- Cancel jobs that wait (scheduled, held, ready). They move to the history at once. A job that had
-- its turn in a session may halt it (`halts`). `error`: the reason to keep with them, or NULL.
-- Locks: the job rows in id order, SKIP LOCKED: a job that is being claimed is not cancelled here.
-- Index: primary key.
WITH target AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.state IN ('scheduled', 'held', 'ready')
        -- the anchor of a monitor lasts as long as its details: the monitor is what is cancelled
        AND NOT (
            j.monitor_id IS NOT NULL AND j.held_by IN ('details', 'session') AND EXISTS (
                SELECT
                FROM tenantqueue_concurrentjobmonitor m
                WHERE m.id = j.monitor_id AND m.anchor_id = j.id AND m.cancelled_at IS NULL
            )
        )
    ORDER BY j.id
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM tenantqueue_job_hot AS job
    -- by arrays: see finish_jobs.sql
    WHERE job.id = ANY (ARRAY(SELECT t.id FROM target t))
    RETURNING
        job.*, job.session_key IS NOT NULL AND job.held_by IS DISTINCT FROM 'session' AS was_next,
        'cancelled' AS new_state, job.started_at AS new_started_at,
        coalesce(job.cancel_requested_at, clock_timestamp()) AS new_cancel_requested_at,
        job.crashes AS new_crashes, NULL AS new_held_by, job.result AS new_result,
        job.result_ref AS new_result_ref, NULL::jsonb AS extra,
        tenantqueue_add_error(job.errors, %(error)s::jsonb, NULL) AS new_errors,
        CASE
            WHEN job.follow_ups IS NOT NULL
                THEN tenantqueue_enqueue_follow_ups(
                    job.id, job.lane, job.priority, job.follow_ups, 'cancelled'
                )
        END AS new_follow_ups
), ended AS (
    SELECT removed.session_key AS key, removed.id AS job_id, removed.session_halt AS wanted
    FROM removed
    WHERE removed.was_next AND %(halts)s::boolean
),
-- include: session_halt
-- include: move_to_history
RETURNING id, follow_ups::text,
-- include: gates_text
