-- Functions that statements and indexes of jobs call.

-- The errors of a job with one more; the oldest goes when there are `most` already. NULL adds none.
-- `most` NULL: any number is kept. The planner replaces a call by the expression.
CREATE FUNCTION tenantqueue_add_error(errors jsonb, error jsonb, most integer) RETURNS jsonb
LANGUAGE sql IMMUTABLE
RETURN CASE
    WHEN error IS NULL THEN errors
    WHEN jsonb_array_length(errors) >= most THEN errors - 0 || error
    ELSE coalesce(errors, '[]') || error
END;

-- The class of the newest error, as figures name it. The planner replaces a call by the expression.
CREATE FUNCTION tenantqueue_error_class(errors jsonb) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN coalesce(nullif(left(errors -> -1 ->> 'class', 300), ''), '?');

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
    -- the columns by their names, so that those which are added later are copied, too
    INSERT INTO tenantqueue_job_hot
    SELECT job.*
    FROM jsonb_array_elements(due) AS next (value)
    CROSS JOIN LATERAL (
        SELECT coalesce(
            (next.value ->> 'run_at')::timestamptz,
            clock_timestamp()
                + make_interval(secs => coalesce((next.value ->> 'delay_seconds')::float8, 0))
        ) AS at
        OFFSET 0
    ) moment
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN next.value ->> 'held_by' = 'session' THEN 'held'
            WHEN moment.at > clock_timestamp() THEN 'scheduled'
            WHEN next.value ->> 'held_by' IS NOT NULL THEN 'held'
            ELSE 'ready'
        END AS state
        OFFSET 0
    ) first
    CROSS JOIN LATERAL jsonb_populate_record(
        NULL::tenantqueue_job_hot,
        '{
            "final": false, "is_async": false, "session_skip": false, "session_halt": false,
            "attempt": 0, "crashes": 0, "claim_seq": 0
        }'::jsonb
        || next.value
        || jsonb_build_object(
            'previous_id', $1, 'state', first.state, 'run_at', moment.at,
            'created_at', clock_timestamp(),
            'held_by', CASE WHEN first.state = 'held' THEN next.value -> 'held_by' END,
            'expires_at', coalesce(
                (next.value ->> 'expires_at')::timestamptz,
                clock_timestamp()
                    + make_interval(secs => (next.value ->> 'expires_seconds')::float8)
            )
        )
    ) job
    WHERE next.value ? 'id'
        -- a tenant that was erased has no queues; not EXISTS, which might read all of them
        AND (SELECT true FROM tenantqueue_tenantqueue q WHERE q.id = job.queue_id);
    RETURN CASE WHEN $5 = 'success' THEN tenantqueue_short_follow_ups(due) ELSE due END;
END
$$;

-- Each count is added to the one in its place; the longer list decides the length.
CREATE FUNCTION tenantqueue_add_counts(a bigint[], b bigint[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF cardinality(b) > cardinality(a) THEN
        RETURN tenantqueue_add_counts(b, a);
    END IF;
    FOR n IN 1 .. cardinality(b) LOOP
        a[n] := a[n] + b[n];
    END LOOP;
    RETURN a;
END $$;
CREATE AGGREGATE tenantqueue_sum_counts (bigint[]) (
    SFUNC = tenantqueue_add_counts, STYPE = bigint[], INITCOND = '{}'
);

-- Claims share this lock of a queue without limit, see sql/parts/lock_class.sql. An edit that
-- limits or pauses it waits for them. TG_RELID is the oid of tenantqueue_tenantqueue.
CREATE FUNCTION tenantqueue_wait_for_claims() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext(concat_ws(' ', 1953591669, TG_RELID)), NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER tenantqueue_queue_limited BEFORE UPDATE ON tenantqueue_tenantqueue
FOR EACH ROW WHEN (
    OLD.num_slots IS NULL AND OLD.max_per_second IS NULL AND NOT OLD.paused
    AND (NEW.num_slots IS NOT NULL OR NEW.max_per_second IS NOT NULL OR NEW.paused)
)
EXECUTE FUNCTION tenantqueue_wait_for_claims();
