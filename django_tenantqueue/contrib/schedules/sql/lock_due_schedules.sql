-- Locks schedules whose time has come, the earliest first. Those that another session has locked
-- are left: an operator edits them. Returns what they enqueue, and whether the last job goes on.
-- Index: tenantqueue_schedule_due, up to now; the last job by the primary key of
-- tenantqueue_job_hot. (With clock_timestamp() in the condition all schedules would be read.)
SELECT
    s.id,
    coalesce(%(now)s::timestamptz, statement_timestamp()) AS now,
    EXISTS (SELECT FROM tenantqueue_job_hot j WHERE j.id = s.last_job_id) AS is_running
FROM tenantqueue_schedule s
WHERE s.enabled
    AND s.next_at IS NOT NULL
    AND s.next_at <= coalesce(%(now)s::timestamptz, statement_timestamp())
ORDER BY s.next_at, s.id
LIMIT %(most)s
FOR NO KEY UPDATE OF s SKIP LOCKED
