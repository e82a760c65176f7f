-- Follow-ups without what only their own jobs need: no arguments, and nothing behind them.
CREATE FUNCTION tenantqueue_short_follow_ups(follow_ups jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE
RETURN (
    SELECT jsonb_agg(f.value - '{args,context,follow_ups}'::text[] ORDER BY f.ordinality)
    FROM jsonb_array_elements(follow_ups) WITH ORDINALITY f
);

-- Enqueue what follows a job that ends in `state`, and return what the job then stores of it: with
-- the ids of the new jobs, and no longer whole after a success, since that is not retried.
-- The statement that ends the job calls this, and only for jobs that are followed. Nothing refuses
-- the rows: they were checked when the first job was enqueued. Limits of waiting jobs and retired
-- queues do not count. `lane` and `priority` are those of the job. PRIORITY_SCOPE may have changed
-- since the first enqueue: they tell whether each priority has a lane of its own now.
CREATE FUNCTION tenantqueue_enqueue_follow_ups(
    previous bigint, lane smallint, priority smallint, follow_ups jsonb, state text
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    due jsonb := (
        SELECT jsonb_agg(
            CASE
                WHEN $5 = 'success' OR f.value ->> 'on' = 'end'
                    THEN f.value || jsonb_build_object(
                        'id', nextval('tenantqueue_job_id_seq'),
                        'lane', CASE
                            WHEN $2 <> $3 THEN '0'::jsonb
                            WHEN $3 <> 0 THEN f.value -> 'priority'
                            ELSE f.value -> 'lane'
                        END
                    )
                ELSE f.value - 'id'
            END
            ORDER BY f.ordinality
        )
        FROM jsonb_array_elements($4) WITH ORDINALITY f
    );
BEGIN
    INSERT INTO tenantqueue_job_hot (
        id, previous_id, queue_id, lane, priority, is_async, state, held_by, run_at, expires_at,
        max_attempts, timeout_seconds, hard_timeout_seconds, name, source_type, source_id,
        source_method, args, labels, created_by, context, session_key, session_skip, session_halt,
        user_key, exclusive_key, unique_mode, follow_ups
    )
    SELECT
        next.id, $1, next.queue_id, next.lane, next.priority, next.is_async, first.state,
        CASE
            WHEN first.state <> 'held' THEN NULL
            WHEN next.session_key IS NOT NULL THEN 'session'
            WHEN next.user_key IS NOT NULL THEN 'user'
            ELSE 'exclusive'
        END,
        moment.at,
        coalesce(
            next.expires_at, clock_timestamp() + make_interval(secs => next.expires_seconds)
        ),
        next.max_attempts, next.timeout_seconds, next.hard_timeout_seconds, next.name,
        next.source_type, next.source_id, next.source_method, next.args, next.labels,
        next.created_by, next.context, next.session_key, coalesce(next.session_skip, false),
        coalesce(next.session_halt, false), next.user_key, next.exclusive_key, next.unique_mode,
        next.follow_ups
    FROM jsonb_to_recordset(due) AS next (
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
    ) moment
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN next.session_key IS NOT NULL THEN 'held'
            WHEN moment.at > clock_timestamp() THEN 'scheduled'
            WHEN next.user_key IS NOT NULL OR next.exclusive_key IS NOT NULL THEN 'held'
            ELSE 'created'
        END AS state
        OFFSET 0
    ) first
    WHERE next.id IS NOT NULL
        -- a tenant that was erased has no queues; not EXISTS, which might read all of them
        AND (SELECT true FROM tenantqueue_tenantqueue q WHERE q.id = next.queue_id);
    RETURN CASE WHEN $5 = 'success' THEN tenantqueue_short_follow_ups(due) ELSE due END;
END
$$
