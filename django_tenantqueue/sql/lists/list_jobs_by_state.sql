-- Ids of jobs below `before` in `states` that have an index, the newest first. Unfinished jobs hold
-- a slot or are scheduled: `most` are looked at, of the scheduled ones those that are due first.
-- Finished ones (`final`) have failed or were cancelled: the newest `most` of each are looked at.
-- Indexes: tenantqueue_job_slots, as small as the fleet; tenantqueue_job_due;
-- tenantqueue_history_failed of each leaf, merged. Its condition stands here for the planner. The
-- others compare rows, which says the same as equality: only this index has the order that is then
-- asked for, while the primary key could be walked for ever.
WITH candidate AS MATERIALIZED (
    (
        SELECT
            NULL AS newest_of,
-- include: listed_columns
        FROM tenantqueue_job_hot j
        WHERE j.state IN ('queued', 'running') AND ARRAY['queued', 'running'] && %(states)s::text[]
        UNION ALL
        (
            SELECT
                NULL,
-- include: listed_columns
            FROM tenantqueue_job_hot j
            WHERE j.state = 'scheduled' AND 'scheduled' = ANY (%(states)s::text[])
            ORDER BY j.run_at
            LIMIT %(most)s
        )
        LIMIT %(most)s
    )
    UNION ALL
    SELECT wanted.state, job.*
    FROM unnest(%(states)s::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
        SELECT
-- include: listed_columns
        FROM tenantqueue_job_history j
        WHERE %(final)s::boolean  -- here, or all leaves would be planned
            AND j.state IN ('error', 'cancelled')
            AND (j.state, j.id) >= (wanted.state, %(after)s)
            AND (j.state, j.id) < (wanted.state, %(before)s)
            AND j.finished_at >= %(month_from)s::timestamptz
            AND j.finished_at < %(month_to)s::timestamptz
        ORDER BY j.state DESC, j.id DESC
        LIMIT %(most)s
    ) job
),
-- include: page_of_ids
