-- Add what happened since the last time to the figures of this minute.
-- It waits for no disk: it shares the row of all queues with every other worker.
-- Locks: the rows, in the order of their keys. Index: primary key.
WITH quick AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
)
INSERT INTO tenantqueue_figure AS figure (
    queue_id, at, task, error, minutes, started, succeeded, failed, retried, cancelled,
    wait_seconds, run_seconds, waits, runs, last_job_id
)
SELECT
    new.queue_id, date_trunc('minute', clock_timestamp(), 'UTC'), new.task, new.error, 1,
    new.started, new.succeeded, new.failed, new.retried, new.cancelled, new.wait_seconds,
    new.run_seconds, new.waits::bigint[], new.runs::bigint[], new.last_job_id
FROM quick, unnest(
    %(queue_ids)s::integer[], %(tasks)s::text[], %(errors)s::text[], %(started)s::bigint[],
    %(succeeded)s::bigint[], %(failed)s::bigint[], %(retried)s::bigint[], %(cancelled)s::bigint[],
    %(wait_seconds)s::float8[], %(run_seconds)s::float8[], %(waits)s::text[], %(runs)s::text[],
    %(last_job_ids)s::bigint[]
) AS new (
    queue_id, task, error, started, succeeded, failed, retried, cancelled, wait_seconds,
    run_seconds, waits, runs, last_job_id
)
ORDER BY new.queue_id, new.task, new.error
-- include: add_to_figure
