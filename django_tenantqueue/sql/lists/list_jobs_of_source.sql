-- Ids of jobs of one model instance below `before`, unfinished and finished, the newest first. The
-- newest `most` are looked at; `floor` is the last of them when there are more.
-- Indexes: tenantqueue_job_source, and tenantqueue_history_source of each leaf, merged. The first
-- condition lets the planner see that these partial indexes hold every row. The others compare
-- rows, as list_jobs_of_sources.sql does.
WITH candidate AS MATERIALIZED (
    SELECT
        j.id, j.state, j.queue_id, j.name,
-- include: fits
    FROM tenantqueue_job j
    WHERE j.source_id <> ''
        AND (j.source_type, j.source_id) >= (%(source_type)s::text, %(source_id)s::text)
        AND (j.source_type, j.source_id, j.id)
            < (%(source_type)s::text, %(source_id)s::text, %(before)s)
    ORDER BY j.source_type DESC, j.source_id DESC, j.id DESC
    LIMIT %(most)s
),
-- include: seen_newest
-- include: page_of_ids
