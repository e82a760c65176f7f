-- Keep what a maintenance duty did last. `outcome` is NULL when it found nothing to do.
-- Index: primary key.
INSERT INTO tenantqueue_duty AS duty (
    name, worker, ran_at, duration_seconds, outcome, acted_at, runs, error
)
VALUES (
    %(name)s, %(worker)s, clock_timestamp(), %(duration_seconds)s::float8,
    coalesce(%(outcome)s::text, ''),
    CASE WHEN %(outcome)s::text IS NOT NULL THEN clock_timestamp() END,
    %(runs)s::bigint, %(error)s
)
ON CONFLICT (name) DO UPDATE
SET worker = EXCLUDED.worker,
    ran_at = EXCLUDED.ran_at,
    duration_seconds = EXCLUDED.duration_seconds,
    outcome = CASE WHEN EXCLUDED.acted_at IS NULL THEN duty.outcome ELSE EXCLUDED.outcome END,
    acted_at = coalesce(EXCLUDED.acted_at, duty.acted_at),
    runs = duty.runs + EXCLUDED.runs,
    error = EXCLUDED.error
RETURNING name
