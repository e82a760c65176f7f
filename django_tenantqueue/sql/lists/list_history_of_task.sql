-- Ids of finished jobs of one task below `before` and not below `after`, the newest first. They
-- ended from `month_from` to `month_to`, two ends of months. The newest `most` are looked at.
-- Index: tenantqueue_history_task of each leaf, merged.
-- The conditions compare rows, which says the same as equality: only this index has the order that
-- is then asked for, while the primary key could be walked for ever.
WITH candidate AS MATERIALIZED (
    SELECT
        '' AS newest_of,
-- include: listed_columns
    FROM tenantqueue_job_history j
    WHERE (j.task, j.id) >= (%(task)s::text, %(after)s)
        AND (j.task, j.id) < (%(task)s::text, %(before)s)
        AND j.finished_at >= %(month_from)s::timestamptz
        AND j.finished_at < %(month_to)s::timestamptz
    ORDER BY j.task DESC, j.id DESC
    LIMIT %(most)s
),
-- include: page_of_ids
