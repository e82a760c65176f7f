-- Workers that hold jobs or a row but give no sign of life: their advisory lock is free
-- (`lock_class`, id), with the age of the last heartbeat; those without a lock whose last heartbeat
-- is older than `lease_seconds`; and workers that jobs name but that have no row.
-- Right after a restart of the server, or after a crash of one of its processes, which resets its
-- statistics, the locks are not taken again yet: then no worker is dead.
-- The locks are read once for all: that stops whoever takes or frees one.
-- Index: tenantqueue_job_slots, read once whole (it holds running jobs only).
WITH held AS MATERIALIZED (
    SELECT l.objid
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
        AND l.classid = CAST(
-- include: lock_class
            AS oid
        )
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
)
SELECT w.id, CASE WHEN w.leased
    -- a lock may be lost and taken again between any two looks
    THEN extract(epoch FROM clock_timestamp() - w.heartbeat_at)::float8
END AS silent_seconds
FROM tenantqueue_worker w
WHERE greatest(pg_postmaster_start_time(), (SELECT b.stats_reset FROM pg_stat_bgwriter b))
        < clock_timestamp() - make_interval(secs => %(settle_seconds)s::float8)
    AND CASE
        WHEN w.leased THEN w.id::integer::oid NOT IN (SELECT held.objid FROM held)
        ELSE w.heartbeat_at
            < clock_timestamp() - make_interval(secs => %(lease_seconds)s::float8)
    END
UNION
SELECT j.worker_id, NULL
FROM tenantqueue_job_hot j
WHERE j.state IN ('queued', 'running')
    AND NOT EXISTS (SELECT FROM tenantqueue_worker w WHERE w.id = j.worker_id)
