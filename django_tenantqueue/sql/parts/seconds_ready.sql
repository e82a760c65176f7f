-- For how many seconds the ready job `j` has waited; NULL where it has passed a gate.
            CASE
                WHEN coalesce(j.session_key, j.user_key, j.exclusive_key) IS NULL
                    AND j.monitor_id IS NULL
                THEN greatest(
                    0,
                    extract(epoch FROM statement_timestamp() - greatest(j.created_at, j.run_at))
                )::float8
            END AS waits
