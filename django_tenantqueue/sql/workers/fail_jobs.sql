-- End jobs of a worker process that died and shall not run again: those whose cancellation was
-- asked for (cancelled), and the others, whose attempts are spent (error).
-- Those that are not `counted` keep no error of its death: it was another job's doing. `crashed`:
-- counted ones may be what killed it. The caller has locked them by lock_claims.sql.
-- Index: primary key.
WITH removed AS (
    DELETE FROM tenantqueue_job_hot AS job
    WHERE job.id = ANY (%(ids)s::bigint[]) AND job.worker_id = %(worker)s::bigint
    RETURNING
        job.*,
        CASE WHEN job.cancel_requested_at IS NULL THEN 'error' ELSE 'cancelled' END AS new_state,
        job.started_at AS new_started_at, job.cancel_requested_at AS new_cancel_requested_at,
        CASE
            WHEN %(crashed)s::boolean AND job.id = ANY (%(counted)s::bigint[])
                THEN least(job.crashes, 32766) + 1
            ELSE job.crashes
        END AS new_crashes,
        NULL AS new_held_by, job.result AS new_result, job.result_ref AS new_result_ref,
        NULL::jsonb AS extra,
        CASE
            WHEN job.id = ANY (%(counted)s::bigint[])
                THEN tenantqueue_add_error(
                    job.errors, %(error)s::jsonb || jsonb_build_object('attempt', job.attempt),
                    %(max_errors)s::integer
                )
            ELSE job.errors
        END AS new_errors,
        CASE
            WHEN job.follow_ups IS NOT NULL
                THEN tenantqueue_enqueue_follow_ups(
                    job.id, job.lane, job.priority, job.follow_ups, 'error'
                )
        END AS new_follow_ups
)
-- include: move_to_history
RETURNING id, follow_ups::text
