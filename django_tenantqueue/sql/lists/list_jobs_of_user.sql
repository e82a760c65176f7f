-- Ids of the jobs below `before` that one user has created, unfinished and finished, the newest
-- first. The newest `most` of the user are looked at; `floor` is the last of them when there are
-- more. Indexes: tenantqueue_job_creator, and tenantqueue_history_creator of each leaf, merged.
-- The first condition lets the planner see that the partial indexes hold every row. The others
-- compare rows, which says the same as equality: only these indexes have the order that is then
-- asked for, while the primary key could be walked for ever.
WITH candidate AS MATERIALIZED (
    SELECT
        j.id, j.state, j.queue_id, j.name,
-- include: fits
    FROM tenantqueue_job j
    WHERE j.created_by IS NOT NULL
        AND j.created_by >= %(created_by)s::text
        AND (j.created_by, j.id) < (%(created_by)s::text, %(before)s)
    ORDER BY j.created_by DESC, j.id DESC
    LIMIT %(most)s
),
-- include: seen_newest
-- include: page_of_ids
