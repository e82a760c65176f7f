-- Sum a monitor up: when it was started, how many details it was given, how many have not ended,
-- have failed or were cancelled, and when the last one ended.
-- Locks: none. Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside,
-- tenantqueue_job_monitor_aside, tenantqueue_history_monitor, without the rows.
SELECT
    m.created_at, added.details AS added,
    line.jobs + inside.ready + inside.running + inside.waiting + aside.jobs AS unfinished,
    ended.failed, ended.cancelled, newest.finished_at
-- include: monitor_counts
CROSS JOIN LATERAL (
    SELECT max(last.finished_at) AS finished_at
    FROM unnest(ARRAY['success', 'error', 'cancelled']) AS state (name)
    CROSS JOIN LATERAL (
        SELECT j.finished_at
        FROM tenantqueue_job_history j
        WHERE j.monitor_id = m.id AND j.state = state.name AND j.id <> m.anchor_id
        ORDER BY j.finished_at DESC
        LIMIT 1
    ) last
) newest
WHERE m.id = %(monitor_id)s::bigint
