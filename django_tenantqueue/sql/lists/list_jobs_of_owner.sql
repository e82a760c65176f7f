-- Ids of jobs below `before`, unfinished and finished, the newest first: of one model instance, or
-- of the user who created them. An instance has `source_id` and some `source_types`. The newest
-- `most` are looked at.
-- Indexes: tenantqueue_job_source and tenantqueue_history_source, or tenantqueue_job_creator and
-- tenantqueue_history_creator, merged. The first conditions let the planner see that these partial
-- indexes hold every row. The others compare rows, which says the same as equality: only these
-- indexes have the order that is then asked for, while the primary key could be walked for ever.
WITH candidate AS MATERIALIZED (
    SELECT kind.name AS newest_of, job.*
    FROM unnest(%(source_types)s::text[]) AS kind (name)
    CROSS JOIN LATERAL (
        SELECT
-- include: listed_columns
        FROM tenantqueue_job j
        WHERE %(source_id)s::text IS NOT NULL AND j.source_id <> ''
            AND (j.source_type, j.source_id, j.id)
                >= (kind.name, %(source_id)s::text, %(after)s)
            AND (j.source_type, j.source_id, j.id)
                < (kind.name, %(source_id)s::text, %(before)s)
        ORDER BY j.source_type DESC, j.source_id DESC, j.id DESC
        LIMIT %(most)s
    ) job
    UNION ALL
    (
        SELECT
            '',
-- include: listed_columns
        FROM tenantqueue_job j
        WHERE %(created_by)s::text IS NOT NULL AND j.created_by IS NOT NULL
            AND (j.created_by, j.id) >= (%(created_by)s::text, %(after)s)
            AND (j.created_by, j.id) < (%(created_by)s::text, %(before)s)
        ORDER BY j.created_by DESC, j.id DESC
        LIMIT %(most)s
    )
),
-- include: page_of_ids
