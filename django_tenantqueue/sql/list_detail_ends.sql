-- List when the newest details of a monitor ended, at most `most`, not before `since_seconds` ago.
-- Locks: none. Index: tenantqueue_history_monitor, from its newest entries backwards.
SELECT ended.finished_at
FROM unnest(ARRAY['success', 'error']) AS state (name)
CROSS JOIN LATERAL (
    SELECT j.finished_at
    FROM tenantqueue_job_history j
    WHERE j.monitor_id = %(monitor_id)s::bigint AND j.state = state.name
        AND j.finished_at > statement_timestamp() - make_interval(secs => %(since_seconds)s::float8)
    ORDER BY j.finished_at DESC
    LIMIT %(most)s::integer
) ended
ORDER BY ended.finished_at DESC
LIMIT %(most)s::integer
