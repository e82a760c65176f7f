    -- what a claim and a start have written
    worker_id = NULL,
    queued_at = NULL,
    started_at = NULL,
    task_at = NULL,
