    -- what a job runs, and how
    queue_id, priority, is_async, max_attempts, timeout_seconds, hard_timeout_seconds, task,
    source_type, source_id, source_method, args, labels, created_by, context
