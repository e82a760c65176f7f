-- Ids of unfinished jobs below `before`, or of finished ones (`final`), the newest first. The
-- newest `most` are looked at, whatever the filters say.
-- Index: the primary key of the hot leaf, or the primary key of each leaf of the history, merged.
WITH candidate AS MATERIALIZED (
    SELECT
        '' AS newest_of,
-- include: search_text
    FROM tenantqueue_job j
    WHERE j.final = %(final)s::boolean AND j.id < %(before)s
    ORDER BY j.id DESC
    LIMIT %(most)s
),
-- include: page_of_ids
