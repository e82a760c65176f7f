-- Lock what a dead worker process holds, so that each job can be judged: it runs again, or ends.
-- First statement of a rescue; fail_jobs.sql and rescue_jobs.sql follow in the same transaction.
-- Locks: the job rows in id order, SKIP LOCKED: one that an operator holds is rescued at the next
-- try. Index: tenantqueue_job_slots, read once whole (it holds running jobs only).
SELECT
    j.id, j.state = 'running' AS running, j.attempt, j.max_attempts, j.crashes,
    j.cancel_requested_at IS NOT NULL AS cancel,
-- include: gates_text
    , j.queue_id, j.task
FROM tenantqueue_job_hot j
WHERE j.state IN ('queued', 'running') AND j.worker_id = %(worker)s::bigint
ORDER BY j.id
FOR NO KEY UPDATE SKIP LOCKED
