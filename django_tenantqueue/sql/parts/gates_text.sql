    -- the gates of a job, for JobGates.read()
    jsonb_build_array(monitor_id::text, session_key, limit_user, exclusive_key, session_halt)::text
        AS gates
