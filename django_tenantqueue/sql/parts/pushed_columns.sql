    -- what clients of Fireworq see of a job; of its errors only the last one, without its traceback
    j.id, j.name, j.source_method, j.args::text, j.state, j.created_at, j.run_at, j.queued_at,
    j.finished_at, j.attempt, j.max_attempts,
    jsonb_build_array(
        j.errors -> -1 -> 'class', j.errors -> -1 -> 'message', j.errors -> -1 -> 'answer'
    )::text AS error
