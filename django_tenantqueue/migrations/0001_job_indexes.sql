-- The indexes of unfinished jobs.

-- What is ready, in the order in which it is handed out. Serves the claim.
CREATE INDEX tenantqueue_job_ready ON tenantqueue_job_hot (lane, queue_id, priority, id)
    WHERE state = 'ready';

-- What holds a slot, and since when. Serves the count inside the claim, and rescue.
CREATE INDEX tenantqueue_job_slots ON tenantqueue_job_hot (queue_id, queued_at)
    WHERE state IN ('queued', 'running');

-- What waits for its time. Serves promotion.
CREATE INDEX tenantqueue_job_due ON tenantqueue_job_hot (run_at)
    WHERE state = 'scheduled';

-- What waits and is cancelled if it has not started by then. Serves expiry; jobs that never expire
-- are not in it.
CREATE INDEX tenantqueue_job_expiry ON tenantqueue_job_hot (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('scheduled', 'held', 'ready')
        AND (monitor_id IS NULL OR held_by IS NULL OR held_by NOT IN ('details', 'session'));

-- Jobs with gates, two indexes for each kind of gate: the line before it, in the order in which it
-- lets through, and what has passed it and counts there. Jobs without that gate are in neither.
CREATE INDEX tenantqueue_job_monitor_line ON tenantqueue_job_hot (monitor_id, id)
    WHERE held_by = 'monitor';
CREATE INDEX tenantqueue_job_monitor_inside ON tenantqueue_job_hot (monitor_id)
    WHERE monitor_id IS NOT NULL AND (held_by IS NULL OR held_by NOT IN ('monitor', 'task'));
CREATE INDEX tenantqueue_job_monitor_aside ON tenantqueue_job_hot (monitor_id, id)
    WHERE monitor_id IS NOT NULL AND held_by = 'task';
CREATE INDEX tenantqueue_job_session_line
    ON tenantqueue_job_hot (session_key, priority, run_at, id) WHERE held_by = 'session';
CREATE INDEX tenantqueue_job_session_inside ON tenantqueue_job_hot (session_key)
    WHERE session_key IS NOT NULL AND held_by IS DISTINCT FROM 'session';
-- What may block its session while it waits for its time; jobs without a time of their own are not
-- in it.
CREATE INDEX tenantqueue_job_session_block ON tenantqueue_job_hot (session_key, priority)
    WHERE held_by = 'session' AND NOT session_skip AND run_at > created_at;
CREATE INDEX tenantqueue_job_limit_user_line
    ON tenantqueue_job_hot (limit_user, priority, run_at, id) WHERE held_by = 'limit_user';
CREATE INDEX tenantqueue_job_limit_user_inside ON tenantqueue_job_hot (limit_user)
    WHERE limit_user IS NOT NULL
        AND (state IN ('ready', 'queued', 'running') OR held_by = 'exclusive');
CREATE INDEX tenantqueue_job_exclusive_line
    ON tenantqueue_job_hot (exclusive_key, priority, run_at, id) WHERE held_by = 'exclusive';
CREATE INDEX tenantqueue_job_exclusive_inside ON tenantqueue_job_hot (exclusive_key)
    WHERE exclusive_key IS NOT NULL
        AND state IN ('ready', 'queued', 'running');
CREATE INDEX tenantqueue_job_exclusive_reject ON tenantqueue_job_hot (exclusive_key)
    WHERE held_by = 'exclusive' AND unique_mode = 'while_executing_reject';

-- The same for tasks that are paused or capped, by their names: the line, by queues, which take
-- turns, and what has been let through or has a slot of its task.
CREATE INDEX tenantqueue_job_task_line
    ON tenantqueue_job_hot (task, lane, queue_id, priority, id) WHERE held_by = 'task';
CREATE INDEX tenantqueue_job_task_inside ON tenantqueue_job_hot (task, queue_id)
    WHERE task_at IS NOT NULL AND state IN ('ready', 'queued', 'running');

-- Unfinished jobs of model instances, and jobs that name their creator. They serve the lists of
-- customers. Other jobs are in neither.
CREATE INDEX tenantqueue_job_source ON tenantqueue_job_hot (source_type, source_id, id)
    WHERE source_id <> '';
CREATE INDEX tenantqueue_job_creator ON tenantqueue_job_hot (created_by, id)
    WHERE created_by IS NOT NULL;

-- Jobs that wait after a failure. Jobs that have never failed are not in it.
CREATE INDEX tenantqueue_job_errors
    ON tenantqueue_job_hot (left(task, 300), tenantqueue_error_class(errors), id)
    WHERE errors IS NOT NULL AND state IN ('scheduled', 'held', 'ready');

-- What a gate holds, by queue and gate. Jobs that are not held are not in it.
CREATE INDEX tenantqueue_job_held ON tenantqueue_job_hot (queue_id, held_by, run_at)
    WHERE held_by IS NOT NULL;

-- Labels, and arguments that a task declares searchable. Other jobs are in neither. Each entry is
-- made at once: else some statement of a worker would make the entries of thousands of jobs.
CREATE INDEX tenantqueue_job_labels ON tenantqueue_job_hot USING gin (labels)
    WITH (fastupdate = off) WHERE labels IS NOT NULL;
CREATE INDEX tenantqueue_job_search ON tenantqueue_job_hot USING gin ((args -> 'search'))
    WITH (fastupdate = off) WHERE args ? 'search';
