-- The job table: LIST (final) -> one hot leaf | history, RANGE (finished_at) -> months.
-- Order of columns: fixed width first, so that a row wastes no space on alignment.

CREATE SEQUENCE tenantqueue_job_id_seq AS bigint;

CREATE TABLE tenantqueue_job (
    id bigint NOT NULL DEFAULT nextval('tenantqueue_job_id_seq'),
    run_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    queued_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    expires_at timestamptz,
    cancel_requested_at timestamptz,
    task_at timestamptz,
    worker_id bigint,
    monitor_id bigint,
    previous_id bigint,
    timeout_seconds double precision,
    hard_timeout_seconds double precision,
    progress_done double precision,
    progress_total double precision,
    queue_id integer NOT NULL,
    claim_seq integer NOT NULL DEFAULT 0,
    lane smallint NOT NULL,
    priority smallint NOT NULL,
    attempt smallint NOT NULL DEFAULT 0,
    max_attempts smallint NOT NULL DEFAULT 1,
    crashes smallint NOT NULL DEFAULT 0,
    final boolean NOT NULL DEFAULT false,
    is_async boolean NOT NULL DEFAULT false,
    session_skip boolean NOT NULL DEFAULT false,
    session_halt boolean NOT NULL DEFAULT false,
    state varchar(10) NOT NULL DEFAULT 'ready',
    task text NOT NULL,
    source_type text NOT NULL,
    source_id text NOT NULL DEFAULT '',
    source_method text NOT NULL,
    args jsonb NOT NULL DEFAULT '{}',
    held_by text,
    session_key text,
    limit_user text,
    exclusive_key text,
    unique_key text,
    unique_mode text,
    labels text[],
    created_by text,
    context jsonb,
    progress_message text,
    stats jsonb,
    result jsonb,
    result_ref text,
    errors jsonb,
    follow_ups jsonb,
    CONSTRAINT tenantqueue_job_finished CHECK (final = (finished_at IS NOT NULL)),
    CONSTRAINT tenantqueue_job_final CHECK (final = (state IN ('success', 'error', 'cancelled'))),
    CONSTRAINT tenantqueue_job_active CHECK (
        final
        OR (state IN ('queued', 'running') AND worker_id IS NOT NULL AND queued_at IS NOT NULL)
        OR (state NOT IN ('queued', 'running') AND worker_id IS NULL)
    ),
    CONSTRAINT tenantqueue_job_held CHECK ((state = 'held') = (held_by IS NOT NULL)),
    CONSTRAINT tenantqueue_job_attempts CHECK (
        attempt >= 0 AND max_attempts >= 1 AND attempt <= max_attempts
    ),
    -- what Python can show in every time zone
    CONSTRAINT tenantqueue_job_times CHECK (
        run_at >= '1900-01-01 00:00:00+00' AND run_at < '9000-01-01 00:00:00+00'
        AND (
            expires_at IS NULL
            OR (
                expires_at >= '1900-01-01 00:00:00+00' AND expires_at < '9000-01-01 00:00:00+00'
            )
        )
    )
) PARTITION BY LIST (final);

ALTER SEQUENCE tenantqueue_job_id_seq OWNED BY tenantqueue_job.id;

-- Every unfinished job. Thresholds of autovacuum are absolute: at 20 % of a million waiting rows
-- it would come far too late for a table that turns over within minutes.
CREATE TABLE tenantqueue_job_hot PARTITION OF tenantqueue_job (
    CONSTRAINT tenantqueue_job_hot_pkey PRIMARY KEY (id)
) FOR VALUES IN (false) WITH (
    fillfactor = 90,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE TABLE tenantqueue_job_history PARTITION OF tenantqueue_job
    FOR VALUES IN (true) PARTITION BY RANGE (finished_at);

CREATE INDEX tenantqueue_history_queue ON tenantqueue_job_history (queue_id, id);
CREATE INDEX tenantqueue_history_task ON tenantqueue_job_history (task, id);
CREATE INDEX tenantqueue_history_failed ON tenantqueue_job_history (state, id)
    WHERE state IN ('error', 'cancelled');
CREATE INDEX tenantqueue_history_monitor
    ON tenantqueue_job_history (monitor_id, state, finished_at, id) WHERE monitor_id IS NOT NULL;
CREATE INDEX tenantqueue_history_source
    ON tenantqueue_job_history (source_type, source_id, id) WHERE source_id <> '';
CREATE INDEX tenantqueue_history_creator
    ON tenantqueue_job_history (created_by, id) WHERE created_by IS NOT NULL;
-- Jobs that ended in error, in the order of their ends.
CREATE INDEX tenantqueue_history_errors
    ON tenantqueue_job_history (left(task, 300), tenantqueue_error_class(errors), finished_at, id)
    WHERE state = 'error';

-- Labels, and arguments that a task declares searchable. Other jobs are in neither.
CREATE INDEX tenantqueue_history_labels ON tenantqueue_job_history USING gin (labels)
    WHERE labels IS NOT NULL;
CREATE INDEX tenantqueue_history_search ON tenantqueue_job_history USING gin ((args -> 'search'))
    WHERE args ? 'search';

-- Normally empty: takes rows for which maintenance has made no month yet, so that a finish
-- never fails.
CREATE TABLE tenantqueue_job_history_default PARTITION OF tenantqueue_job_history (
    CONSTRAINT tenantqueue_job_history_default_pkey PRIMARY KEY (id)
) DEFAULT;

DO $months$
DECLARE
    first_day date := date_trunc('month', now() AT TIME ZONE 'UTC');
    leaf text;
BEGIN
    FOR i IN 0..3 LOOP
        leaf := 'tenantqueue_job_history_' || to_char(first_day, 'YYYY"m"MM');
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF tenantqueue_job_history (CONSTRAINT %I PRIMARY KEY (id))'
            ' FOR VALUES FROM (%L) TO (%L)',
            leaf, leaf || '_pkey',
            to_char(first_day, 'YYYY-MM-DD') || ' 00:00:00+00',
            to_char(first_day + interval '1 month', 'YYYY-MM-DD') || ' 00:00:00+00'
        );
        first_day := first_day + interval '1 month';
    END LOOP;
END
$months$;
