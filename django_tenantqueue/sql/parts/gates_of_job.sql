        -- its gates and its unique key, as a JSON array; NULL: it has none
        CASE
            WHEN coalesce(
                job.session_key, job.limit_user, job.exclusive_key, job.unique_key,
                job.monitor_id::text
            ) IS NOT NULL
            THEN jsonb_build_array(
                job.monitor_id::text, job.session_key, job.limit_user, job.exclusive_key,
                job.session_halt, job.unique_key
            )::text
        END AS gates,
