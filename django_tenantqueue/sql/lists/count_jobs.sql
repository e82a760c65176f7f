-- Ready, scheduled and running jobs of all queues, and held ones by the gate that holds them, each count bounded by `most` (a result of `most`
-- means "that many or more"), and the database's time.
-- Callbacks that wait for the details of their monitor are not counted on purpose: the details are.
-- Indexes: tenantqueue_job_ready, tenantqueue_job_due, tenantqueue_job_slots,
-- tenantqueue_job_monitor_line, tenantqueue_job_session_line, tenantqueue_job_user_line,
-- tenantqueue_job_exclusive_line, tenantqueue_job_task_line.
SELECT
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.state = 'created'
            ORDER BY j.lane, j.queue_id
            LIMIT %(most)s::integer
        ) job
    ) AS ready,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.state = 'scheduled'
            ORDER BY j.run_at
            LIMIT %(most)s::integer
        ) job
    ) AS scheduled,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.state IN ('queued', 'running')
            LIMIT %(most)s::integer
        ) job
    ) AS running,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'monitor'
            ORDER BY j.monitor_id
            LIMIT %(most)s::integer
        ) job
    ) AS held_by_monitor,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'session'
            ORDER BY j.session_key
            LIMIT %(most)s::integer
        ) job
    ) AS held_by_session,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'user'
            ORDER BY j.user_key
            LIMIT %(most)s::integer
        ) job
    ) AS held_by_user,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'exclusive'
            ORDER BY j.exclusive_key
            LIMIT %(most)s::integer
        ) job
    ) AS held_by_exclusive,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.held_by = 'task'
            ORDER BY j.name
            LIMIT %(most)s::integer
        ) job
    ) AS held_by_task,
    clock_timestamp() AS read_at
