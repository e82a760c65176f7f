    -- what an enqueue writes, and neither the end of the job nor a retry changes
-- include: call_columns
    , monitor_id, session_key, session_skip, session_halt, limit_user, exclusive_key, unique_key,
    unique_mode, previous_id
