-- Totals of the tasks that have some, and of all tasks ("") that have or had none: the rows of the
-- totals and the minute figures that are not in them yet. Index: the primary key of the figures.
WITH later AS (
    SELECT
        f.task,
-- include: sum_figures_exactly
    FROM (SELECT t.at FROM tenantqueue_figuretotal t WHERE t.task = '') up_to
    JOIN tenantqueue_figure f ON f.queue_id = 0 AND f.at >= up_to.at
    WHERE f.error = '' AND f.minutes = 1
    GROUP BY f.task
)
SELECT
    t.task, t.started + coalesce(later.started, 0), t.succeeded + coalesce(later.succeeded, 0),
    t.failed + coalesce(later.failed, 0), t.retried + coalesce(later.retried, 0),
    t.cancelled + coalesce(later.cancelled, 0), t.wait_micros + coalesce(later.wait_micros, 0),
    t.run_micros + coalesce(later.run_micros, 0),
    tenantqueue_add_counts(t.waits, coalesce(later.waits, '{}')),
    tenantqueue_add_counts(t.runs, coalesce(later.runs, '{}'))
FROM tenantqueue_figuretotal t
LEFT JOIN later ON later.task = t.task
ORDER BY t.task
