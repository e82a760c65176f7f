    -- the gates of a job, for JobGates.read()
    jsonb_build_array(monitor_id::text, session_key, user_key, exclusive_key, session_halt)::text
        AS gates
