-- Ids of unfinished jobs below `before` with a text in their name, labels or arguments, the newest
-- first. The newest `most` are looked at, whatever they contain; `floor` is the last of them when
-- there are more.
-- Index: the primary key.
WITH newest AS (
    SELECT j.id, j.state, j.queue_id, j.name, j.labels, j.args
    FROM tenantqueue_job_hot j
    WHERE j.id < %(before)s
    ORDER BY j.id DESC
    LIMIT %(most)s
),
-- include: search
