-- Count the details of monitors by state, and read the columns that operators set, in one snapshot:
-- the caller's objects may be older. Details that succeeded are the remainder of those added, since
-- history may be dropped.
-- Locks: none. Indexes: tenantqueue_job_monitor_line, tenantqueue_job_monitor_inside,
-- tenantqueue_job_monitor_aside, the primary key, tenantqueue_history_monitor.
SELECT
    m.id, added.details, line.jobs, inside.ready, inside.running, inside.waiting, ended.failed,
    ended.cancelled, anchor.state AS anchor_state, anchor.held_by AS anchor_line,
    m.cancelled_at IS NOT NULL, m.paused, m.keep_open, m.parallel, m.stop_after_failures,
    aside.jobs AS aside
-- include: monitor_counts
-- include: anchor
WHERE m.id = ANY (%(ids)s::bigint[])
