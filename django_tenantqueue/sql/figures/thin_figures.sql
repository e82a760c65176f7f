-- Merge up to `most` old figures of `minutes` into rows of `into` minutes; with `into` NULL, delete
-- them. Returns how many were old. A row is old when all of its longer period is before `before`.
-- Locks: the old rows, without a wait for those that are locked, and then the rows that they are
-- added to. Indexes: tenantqueue_figure_age, and the primary key.
WITH old AS MATERIALIZED (
    SELECT f.queue_id, f.at, f.task, f.error, f.minutes
    FROM tenantqueue_figure f
    WHERE f.minutes = %(minutes)s::smallint AND f.at < %(before)s::timestamptz
    ORDER BY f.minutes, f.at
    LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM tenantqueue_figure f
    USING old
    WHERE (f.queue_id, f.at, f.task, f.error, f.minutes)
        = (old.queue_id, old.at, old.task, old.error, old.minutes)
    RETURNING f.*
), merged AS (
    INSERT INTO tenantqueue_figure AS figure (
        queue_id, at, task, error, minutes, started, succeeded, failed, retried, cancelled,
        wait_seconds, run_seconds, waits, runs, last_job_id
    )
    SELECT
        r.queue_id, date_bin(make_interval(mins => %(into)s::integer), r.at, 'epoch') AS at, r.task,
        r.error, %(into)s::integer, sum(r.started), sum(r.succeeded), sum(r.failed), sum(r.retried),
        sum(r.cancelled), sum(r.wait_seconds), sum(r.run_seconds), tenantqueue_sum_counts(r.waits),
        tenantqueue_sum_counts(r.runs), max(r.last_job_id)
    FROM removed r
    WHERE %(into)s::integer IS NOT NULL
    GROUP BY r.queue_id, 2, r.task, r.error
    ORDER BY r.queue_id, 2, r.task, r.error
-- include: add_to_figure
)
SELECT count(*) FROM old
