    -- in the order of call_columns.sql; job: what differs between the jobs of one statement
    %(queue_id)s::integer, %(priority)s::smallint, %(is_async)s::boolean,
    %(max_attempts)s::smallint, %(timeout_seconds)s::float8, %(hard_timeout_seconds)s::float8,
    %(task)s::text, %(source_type)s::text, %(source_id)s::text, %(source_method)s::text, job.args,
    %(labels)s::text[], %(created_by)s::text, %(context)s::jsonb
