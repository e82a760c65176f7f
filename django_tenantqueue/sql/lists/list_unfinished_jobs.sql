-- Ids of unfinished jobs below `before`, the newest first. The newest `most` are looked at,
-- whatever the filters say; `floor` is the last of them when there are more. Index: the primary
-- key.
WITH candidate AS MATERIALIZED (
    SELECT
        j.id, j.state, j.queue_id, j.name,
-- include: fits
    FROM tenantqueue_job_hot j
    WHERE j.id < %(before)s
    ORDER BY j.id DESC
    LIMIT %(most)s
),
-- include: seen_newest
-- include: page_of_ids
