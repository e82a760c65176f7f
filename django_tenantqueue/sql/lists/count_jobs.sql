-- Unfinished jobs by what they wait for, each number counted up to `most`: ready, scheduled,
-- running (with a slot), and held by each gate; and the database's time.
-- Callbacks that wait for the details of their monitor are not counted: the details are.
-- Indexes: tenantqueue_job_ready, tenantqueue_job_due, tenantqueue_job_slots,
-- tenantqueue_job_monitor_line, tenantqueue_job_session_line, tenantqueue_job_limit_user_line,
-- tenantqueue_job_exclusive_line, tenantqueue_job_task_line.
SELECT
    count(*) FILTER (WHERE job.kind = 'ready'),
    count(*) FILTER (WHERE job.kind = 'scheduled'),
    count(*) FILTER (WHERE job.kind = 'running'),
    count(*) FILTER (WHERE job.kind = 'monitor'),
    count(*) FILTER (WHERE job.kind = 'session'),
    count(*) FILTER (WHERE job.kind = 'limit_user'),
    count(*) FILTER (WHERE job.kind = 'exclusive'),
    count(*) FILTER (WHERE job.kind = 'task'),
    clock_timestamp() AS read_at
FROM (
    (SELECT 'ready' AS kind FROM tenantqueue_job_hot j WHERE j.state = 'ready'
        ORDER BY j.lane, j.queue_id LIMIT %(most)s::integer)
    UNION ALL
    (SELECT 'scheduled' AS kind FROM tenantqueue_job_hot j WHERE j.state = 'scheduled'
        ORDER BY j.run_at LIMIT %(most)s::integer)
    UNION ALL
    (SELECT 'running' AS kind FROM tenantqueue_job_hot j WHERE j.state IN ('queued', 'running')
        LIMIT %(most)s::integer)
    UNION ALL
    (SELECT 'monitor' AS kind FROM tenantqueue_job_hot j WHERE j.held_by = 'monitor'
        ORDER BY j.monitor_id LIMIT %(most)s::integer)
    UNION ALL
    (SELECT 'session' AS kind FROM tenantqueue_job_hot j WHERE j.held_by = 'session'
        ORDER BY j.session_key LIMIT %(most)s::integer)
    UNION ALL
    (SELECT 'limit_user' AS kind FROM tenantqueue_job_hot j WHERE j.held_by = 'limit_user'
        ORDER BY j.limit_user LIMIT %(most)s::integer)
    UNION ALL
    (SELECT 'exclusive' AS kind FROM tenantqueue_job_hot j WHERE j.held_by = 'exclusive'
        ORDER BY j.exclusive_key LIMIT %(most)s::integer)
    UNION ALL
    (SELECT 'task' AS kind FROM tenantqueue_job_hot j WHERE j.held_by = 'task'
        ORDER BY j.task LIMIT %(most)s::integer)
) job
