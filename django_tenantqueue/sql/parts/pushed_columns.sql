    -- what clients of Fireworq see of a job
    j.id, j.name, j.source_method, j.args, j.state, j.created_at, j.run_at, j.queued_at,
    j.finished_at, j.attempt, j.max_attempts, j.errors
