    id, lane, state, held_by, run_at, expires_at, follow_ups,
-- include: enqueued_columns
