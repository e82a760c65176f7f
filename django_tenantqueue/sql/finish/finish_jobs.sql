-- Move finished jobs from the hot leaf to the history: DELETE ... RETURNING and INSERT in one
-- statement (an UPDATE that changes the partition would make concurrent claims fail with 40001).
--
-- Fenced: a job whose claim is no longer (worker, claim_seq) is left alone and not returned.
-- Locks: the job rows, in the order of `ids`, which the caller sorts.
-- Index: the hot leaf's primary key. There is no predicate on `state` on purpose: with it the
-- planner may choose the slot index, which is tiny by its statistics and full of dead entries.
WITH done AS MATERIALIZED (
    SELECT d.*
    FROM unnest(
        %(ids)s::bigint[], %(states)s::text[], %(ages)s::float8[], %(results)s::text[],
        %(result_refs)s::text[], %(extras)s::text[]
    ) AS d (id, state, age, result, result_ref, extra)
), deleted AS (
    -- by arrays: a plan for a join may compare all with all, and one that was made while the table
    -- was empty may walk over all of it. Where ids are in order, width_bucket() finds the place of
    -- one by bisection.
    DELETE FROM tenantqueue_job_hot AS job
    WHERE job.id = ANY (%(ids)s::bigint[]) AND job.worker_id = %(worker)s::bigint
        AND job.claim_seq = (%(seqs)s::integer[])[array_position(%(ids)s::bigint[], job.id)]
    RETURNING job.*
), removed AS (
    SELECT
        job.*, done.state AS new_state, job.cancel_requested_at AS new_cancel_requested_at,
        coalesce(
            clock_timestamp() - make_interval(secs => done.age), job.started_at
        ) AS new_started_at,
        job.crashes AS new_crashes, job.held_by AS new_held_by, done.result::jsonb AS new_result,
        done.result_ref AS new_result_ref, done.extra::jsonb AS extra,
        tenantqueue_add_error(
            job.errors, done.extra::jsonb -> 'error', %(max_errors)s::integer
        ) AS new_errors,
        CASE
            WHEN job.follow_ups IS NOT NULL
                THEN tenantqueue_enqueue_follow_ups(
                    job.id, job.lane, job.priority, job.follow_ups, done.state
                )
        END AS new_follow_ups
    FROM deleted job
    JOIN done ON done.id = job.id
)
-- include: move_to_history
RETURNING id, follow_ups::text
