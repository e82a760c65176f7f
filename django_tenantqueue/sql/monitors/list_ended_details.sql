-- List jobs of a monitor that ended in one state, its anchor too: at most `most`, those that ended
-- last first, before the end at `before_at` of the job `before`.
-- Locks: none. Index: tenantqueue_history_monitor of each leaf, merged.
-- The conditions compare rows, which says the same as equality: only this index has the order that
-- is then asked for.
SELECT j.id, j.finished_at
FROM tenantqueue_job_history j
WHERE j.monitor_id >= %(monitor_id)s::bigint
    AND (j.monitor_id, j.state) >= (%(monitor_id)s::bigint, %(state)s::text)
    AND (j.monitor_id, j.state, j.finished_at, j.id) < (
        %(monitor_id)s::bigint, %(state)s::text, %(before_at)s::timestamptz, %(before)s::bigint
    )
ORDER BY j.monitor_id DESC, j.state DESC, j.finished_at DESC, j.id DESC
LIMIT %(most)s::integer
