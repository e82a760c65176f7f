    -- in the order of new_job_columns.sql
    job.id, %(lane)s::smallint, job.state, CASE WHEN job.state = 'held' THEN %(held_by)s::text END,
    job.at, %(expires_at)s::timestamptz, %(follow_ups)s::jsonb,
-- include: call_values
    , %(monitor_id)s::bigint, %(session_key)s::text, %(session_skip)s::boolean,
    %(session_halt)s::boolean, %(limit_user)s::text, job.exclusive_key, job.unique_key,
    %(unique_mode)s::text, %(previous_id)s::bigint
