-- List when the newest details of monitors ended: at most `most` of each, not before
-- `since_seconds` ago.
-- Locks: none. Index: tenantqueue_history_monitor, from the newest entries of each backwards.
SELECT monitor.id, ended.finished_at
FROM unnest(%(ids)s::bigint[]) AS monitor (id)
CROSS JOIN LATERAL (
    SELECT newest.finished_at
    FROM unnest(ARRAY['success', 'error']) AS state (name)
    CROSS JOIN LATERAL (
        SELECT j.finished_at
        FROM tenantqueue_job_history j
        WHERE j.monitor_id = monitor.id AND j.state = state.name
            AND j.finished_at
                > statement_timestamp() - make_interval(secs => %(since_seconds)s::float8)
        ORDER BY j.finished_at DESC
        LIMIT %(most)s::integer
    ) newest
    ORDER BY newest.finished_at DESC
    LIMIT %(most)s::integer
) ended
