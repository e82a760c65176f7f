    id, queue_id, lane, priority, is_async, state, held_by, run_at, expires_at, max_attempts,
    timeout_seconds, hard_timeout_seconds, name, source_type, source_id, source_method, args,
    labels, created_by, context, monitor_id, session_key, session_skip, session_halt, user_key,
    exclusive_key, unique_key, unique_mode, previous_id, follow_ups
