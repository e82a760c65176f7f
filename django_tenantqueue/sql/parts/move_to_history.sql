-- The history row of each job in `removed`: the columns of its hot row, but for those that its end
-- changes. They are in `removed` as `new_state`, `new_started_at`, `new_cancel_requested_at`,
-- `new_crashes`, `new_held_by`, `new_result`, `new_result_ref`, `new_errors`, `new_follow_ups`, and
-- `extra`: progress and statistics as JSON, or NULL.
-- Its follow-ups that are due are enqueued. Nothing refuses them: they were checked with the job.
, follow_up AS (
    INSERT INTO tenantqueue_job_hot (
        id, previous_id, queue_id, lane, priority, is_async, state, held_by, run_at, expires_at,
        max_attempts, timeout_seconds, hard_timeout_seconds, name, source_type, source_id,
        source_method, args, labels, created_by, context, session_key, session_skip, session_halt,
        user_key, exclusive_key, unique_mode, follow_ups
    )
    SELECT
        next.id, removed.id, next.queue_id, next.lane, next.priority, next.is_async, first.state,
        CASE
            WHEN first.state <> 'held' THEN NULL
            WHEN next.session_key IS NOT NULL THEN 'session'
            WHEN next.user_key IS NOT NULL THEN 'user'
            ELSE 'exclusive'
        END,
        due.at,
        coalesce(
            next.expires_at, clock_timestamp() + make_interval(secs => next.expires_seconds)
        ),
        next.max_attempts, next.timeout_seconds, next.hard_timeout_seconds, next.name,
        next.source_type, next.source_id, next.source_method, next.args, next.labels,
        next.created_by, next.context, next.session_key, coalesce(next.session_skip, false),
        coalesce(next.session_halt, false), next.user_key, next.exclusive_key, next.unique_mode,
        next.follow_ups
    FROM removed
    CROSS JOIN LATERAL jsonb_to_recordset(removed.new_follow_ups) AS next (
        id bigint, queue_id integer, lane smallint, priority smallint, is_async boolean,
        run_at timestamptz, delay_seconds float8, expires_at timestamptz, expires_seconds float8,
        max_attempts smallint, timeout_seconds float8, hard_timeout_seconds float8, name text,
        source_type text, source_id text, source_method text, args jsonb, labels text[],
        created_by text, context jsonb, session_key text, session_skip boolean,
        session_halt boolean, user_key text, exclusive_key text, unique_mode text, follow_ups jsonb
    )
    CROSS JOIN LATERAL (
        SELECT coalesce(
            next.run_at,
            clock_timestamp() + make_interval(secs => coalesce(next.delay_seconds, 0))
        ) AS at
        OFFSET 0
    ) due
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN next.session_key IS NOT NULL THEN 'held'
            WHEN due.at > clock_timestamp() THEN 'scheduled'
            WHEN next.user_key IS NOT NULL OR next.exclusive_key IS NOT NULL THEN 'held'
            ELSE 'created'
        END AS state
        OFFSET 0
    ) first
    WHERE removed.new_follow_ups IS NOT NULL AND next.id IS NOT NULL
        -- a tenant that was erased has no queues; not EXISTS, which might read all of them
        AND (SELECT true FROM tenantqueue_tenantqueue q WHERE q.id = next.queue_id)
)
INSERT INTO tenantqueue_job_history (
    id, run_at, created_at, queued_at, started_at, finished_at, expires_at, cancel_requested_at,
    worker_id, monitor_id, timeout_seconds, hard_timeout_seconds, progress_done, progress_total,
    queue_id, claim_seq, lane, priority, attempt, max_attempts, crashes, final, is_async, state,
    name, source_type, source_id, source_method, args, held_by, session_key, user_key,
    exclusive_key, unique_key, unique_mode, session_skip, session_halt, labels, created_by, context,
    progress_message, stats, result, result_ref, errors, previous_id, follow_ups
)
SELECT
    id, run_at, created_at, queued_at, new_started_at, clock_timestamp(), expires_at,
    new_cancel_requested_at, worker_id, monitor_id, timeout_seconds, hard_timeout_seconds,
    coalesce((extra ->> 'done')::float8, progress_done),
    coalesce((extra ->> 'total')::float8, progress_total),
    queue_id, claim_seq, lane, priority, attempt, max_attempts, new_crashes, true, is_async,
    new_state, name, source_type, source_id, source_method, args, new_held_by, session_key,
    user_key, exclusive_key, unique_key, unique_mode, session_skip, session_halt, labels,
    created_by, context,
    coalesce(extra ->> 'message', progress_message), coalesce(extra -> 'stats', stats), new_result,
    new_result_ref, new_errors, previous_id,
    -- a job that has succeeded is not retried
    CASE
        WHEN new_follow_ups IS NOT NULL AND new_state = 'success'
            THEN tenantqueue_short_follow_ups(new_follow_ups)
        ELSE new_follow_ups
    END
FROM removed
