-- The jobs that a gate has released and that have not ended, at most `most`: of a session, a
-- user or an exclusive key. They are read in no order.
-- Locks: none. Indexes: tenantqueue_job_session_inside, tenantqueue_job_limit_user_inside,
-- tenantqueue_job_exclusive_inside.
WITH
-- include: gate_jobs
SELECT i.id, i.state, i.run_at, i.held_by, i.monitor_id
FROM inside_job i
WHERE i.kind = %(kind)s::text AND i.key = %(key)s::text
LIMIT %(most)s::integer
