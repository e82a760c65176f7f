-- What lets a monitor feed its details or not: its columns, its failures up to its limit, its
-- details in flight up to `parallel`, and what its anchor waits for.
-- Locks: none. Indexes: tenantqueue_job_monitor_inside, tenantqueue_history_monitor, primary keys.
SELECT
    m.id, m.name, m.parallel, m.interval_seconds, m.paused, m.stop_after_failures, m.keep_open,
    m.cancelled_at, m.session_key, m.anchor_id, anchor.held_by AS anchor_line,
    coalesce(
-- include: failed_details
    >= m.stop_after_failures, false) AS is_stopped,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.monitor_id = m.id AND j.id <> m.anchor_id
                AND (j.held_by IS NULL OR j.held_by NOT IN ('monitor', 'task'))
            LIMIT m.parallel
        ) inside
    ) AS in_flight,
    CASE
        WHEN m.interval_seconds > 0
        THEN greatest(
            0,
            extract(
                epoch FROM pace.fed_at + make_interval(secs => m.interval_seconds)
                - clock_timestamp()
            )::float8
        )
    END AS feeds_in_seconds
FROM tenantqueue_concurrentjobmonitor m
LEFT JOIN tenantqueue_monitorpace pace ON pace.monitor_id = m.id
-- include: anchor
WHERE m.id = %(monitor_id)s::bigint
