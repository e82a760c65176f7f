-- Ids of jobs below `before`, the newest first: of unfinished ones, or of finished ones (`final`)
-- that ended from `month_from` to `month_to`, two ends of months. One key is given: a label, an
-- argument; or, of unfinished jobs, a session, or any error: its class is checked. `most` jobs that
-- have it are looked at, in no order of ids.
-- Indexes, by bitmaps: tenantqueue_job_labels, tenantqueue_job_search,
-- tenantqueue_job_session_line, tenantqueue_job_session_inside, tenantqueue_job_errors,
-- tenantqueue_job_slots; of each leaf of the history
-- tenantqueue_history_labels and tenantqueue_history_search.
WITH candidate AS MATERIALIZED (
    SELECT
        NULL AS newest_of,
-- include: listed_columns
    FROM tenantqueue_job_hot j
    WHERE NOT %(final)s::boolean
        AND (%(key_label)s::text IS NULL OR j.labels @> ARRAY[%(key_label)s::text])
        AND (
            %(key_argument)s::text IS NULL
            OR (j.args ? 'search' AND (j.args -> 'search') ? %(key_argument)s::text)
        )
        AND (
            %(key_session)s::text IS NULL
            OR (j.session_key = %(key_session)s::text AND j.held_by = 'session')
            OR (j.session_key = %(key_session)s::text AND j.held_by IS DISTINCT FROM 'session')
        )
        AND (
            %(key_error)s::text IS NULL
            OR (j.errors IS NOT NULL AND j.state IN ('scheduled', 'held', 'ready'))
            OR j.state IN ('queued', 'running')
        )
    UNION ALL
    SELECT
        NULL,
-- include: listed_columns
    FROM tenantqueue_job_history j
    WHERE %(final)s::boolean
        AND (%(key_label)s::text IS NULL OR j.labels @> ARRAY[%(key_label)s::text])
        AND (
            %(key_argument)s::text IS NULL
            OR (j.args ? 'search' AND (j.args -> 'search') ? %(key_argument)s::text)
        )
        AND j.finished_at >= %(month_from)s::timestamptz
        AND j.finished_at < %(month_to)s::timestamptz
    LIMIT %(most)s
),
-- include: page_of_ids
