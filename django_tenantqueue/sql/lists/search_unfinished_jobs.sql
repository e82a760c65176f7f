-- Ids of unfinished jobs below `before` with a text in their name, labels or arguments, the newest
-- first. The newest `most` are looked at, whatever they contain; `floor` is the last of them when
-- there are more.
-- Index: the primary key.
WITH looked AS MATERIALIZED (
    SELECT j.id, j.state, j.queue_id, j.name,
-- include: fits_text
    AS fits
    FROM tenantqueue_job_hot j
    WHERE j.id < %(before)s
    ORDER BY j.id DESC
    LIMIT %(most)s
), candidate AS (
    SELECT looked.id, looked.state, looked.queue_id, looked.name
    FROM looked
    WHERE looked.fits
), seen AS (
    SELECT CASE WHEN count(*) = %(most)s THEN min(looked.id) ELSE 0 END AS floor, false AS capped
    FROM looked
)
-- include: page_of_ids
