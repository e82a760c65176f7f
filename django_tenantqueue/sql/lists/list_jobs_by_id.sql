-- Ids of unfinished jobs below `before` and not below `after`, or of finished ones (`final`) that
-- ended from `month_from` to `month_to`, two ends of months, the newest first. The
-- newest `most` are looked at, whatever the filters say.
-- Index: the primary key of the hot leaf, or the primary key of each leaf of the history, merged.
WITH candidate AS MATERIALIZED (
    SELECT
        '' AS newest_of,
-- include: listed_columns
    FROM tenantqueue_job j
    WHERE j.final = %(final)s::boolean AND j.id < %(before)s AND j.id >= %(after)s
        -- whole months, so that leaves are left out and no row is
        AND (
            NOT %(final)s::boolean
            OR j.finished_at >= %(month_from)s::timestamptz
            AND j.finished_at < %(month_to)s::timestamptz
        )
    ORDER BY j.id DESC
    LIMIT %(most)s
),
-- include: page_of_ids
