    -- job: what differs between the jobs of one statement
    job.id,
    %(queue_id)s::integer, %(lane)s::smallint, %(priority)s::smallint, %(is_async)s::boolean,
    job.state, CASE WHEN job.state = 'held' THEN %(held_by)s::text END,
    job.at, %(expires_at)s::timestamptz, %(max_attempts)s::smallint,
    %(timeout_seconds)s::float8, %(hard_timeout_seconds)s::float8,
    %(name)s::text, %(source_type)s::text, %(source_id)s::text,
    %(source_method)s::text, job.args, %(labels)s::text[], %(created_by)s::text,
    %(context)s::jsonb, %(monitor_id)s::bigint, %(session_key)s::text, %(session_skip)s::boolean,
    %(session_halt)s::boolean, %(user_key)s::text, job.exclusive_key, job.unique_key,
    %(unique_mode)s::text, %(previous_id)s::bigint, %(follow_ups)s::jsonb
