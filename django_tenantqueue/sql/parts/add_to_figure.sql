-- A row of figures that exists already gets the sums.
ON CONFLICT (queue_id, at, task, error, minutes) DO UPDATE
SET started = figure.started + excluded.started,
    succeeded = figure.succeeded + excluded.succeeded,
    failed = figure.failed + excluded.failed,
    retried = figure.retried + excluded.retried,
    cancelled = figure.cancelled + excluded.cancelled,
    wait_seconds = figure.wait_seconds + excluded.wait_seconds,
    run_seconds = figure.run_seconds + excluded.run_seconds,
    waits = tenantqueue_add_counts(figure.waits, excluded.waits),
    runs = tenantqueue_add_counts(figure.runs, excluded.runs),
    last_job_id = greatest(figure.last_job_id, excluded.last_job_id)
